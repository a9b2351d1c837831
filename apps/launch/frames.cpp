#include "frames.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "meshpost/base/error.hpp"
#include "meshpost/version.hpp"

namespace meshpost::launch {
namespace {

struct Header {
  u32 size, say, process;
  i32 number;
};

constexpr u32 version_of_frames = 2;

}  // namespace

std::string greeting() {
  return fmt::format("{}{} of meshpost {}", greeting_begins, version_of_frames, version);
}

void pack_onto(std::string& stream, Frame const& frame) {
  Header const header{static_cast<u32>(frame.text.size()), static_cast<u32>(frame.say),
                      frame.process, frame.number};
  stream.append(reinterpret_cast<char const*>(&header), sizeof header);
  stream += frame.text;
}

std::optional<std::string> Cutter::line() {
  auto const end = held_.find('\n', taken_);
  if (end == std::string::npos) return std::nullopt;
  auto text = held_.substr(taken_, end - taken_);
  taken_ = end + 1;
  return text;
}

std::optional<Frame> Cutter::next() {
  Header header{};
  auto const there = held_.size() - taken_;
  if (there >= sizeof header) {
    std::memcpy(&header, held_.data() + taken_, sizeof header);
    if (header.size > most_text || header.say >= static_cast<u32>(Say::count))
      throw Error(Kind::bad_argument, "read a message", "it is none of meshpost-run's",
                  "see that nothing else writes to that connection");
    if (there >= sizeof header + header.size) {
      Frame frame{static_cast<Say>(header.say), header.process, header.number,
                  held_.substr(taken_ + sizeof header, header.size)};
      taken_ += sizeof header + header.size;
      return frame;
    }
  }
  held_.erase(0, std::exchange(taken_, 0));
  return std::nullopt;
}

std::string pack_list(std::vector<std::string> const& texts) {
  std::string all;
  for (auto const& text : texts) (all += text) += '\0';
  return all;
}

std::vector<std::string> unpack_list(std::string_view text) {
  std::vector<std::string> all;
  while (!text.empty()) {
    auto const end = text.find('\0');
    all.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return all;
}

}  // namespace meshpost::launch
