#include "world/out_of_band.hpp"

#include <utility>

namespace meshpost {

void Notices::tell(u32 peer, std::string const& bytes) { processes_.post(channel_, peer, bytes); }

std::vector<net::OutOfBand::Notice> Notices::take() {
  std::vector<Notice> all;
  for (auto& post : processes_.take_messages(channel_))
    all.push_back({post.from, std::move(post.bytes)});
  return all;
}

}  // namespace meshpost
