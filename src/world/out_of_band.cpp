#include "world/out_of_band.hpp"

#include <fmt/format.h>

#include <utility>

namespace meshpost {

void Notices::tell(u32 peer, std::string const& bytes) {
  if (processes_.post(channel_, peer, bytes)) return;
  throw processes_.lost_error(fmt::format("tell {} of lost messages", processes_.name(peer)),
                              processes_.gone(0).value());  // it never comes back
}

std::vector<net::OutOfBand::Notice> Notices::take() {
  std::vector<Notice> all;
  for (auto& post : processes_.take_posts(channel_))
    all.push_back({post.from, std::move(post.bytes)});
  return all;
}

}  // namespace meshpost
