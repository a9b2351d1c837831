#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace meshpost::launch {

/// Cuts the output of a process into whole lines with a label. So lines of several processes can be
/// printed one after the other.
class Lines {
 public:
  /// A line longer than `longest` bytes is broken there, to bound memory.
  explicit Lines(std::string label, std::size_t longest = std::size_t{16} << 20)
      : label_(std::move(label)), longest_(longest) {}

  /// Takes the next output; appends the lines that are complete now to `out`.
  void add(std::string_view bytes, std::string& out) {
    while (!bytes.empty()) {
      auto const end = bytes.find('\n');
      auto const room = longest_ - held_.size();
      auto const part = bytes.substr(0, end >= room ? room : end + 1);
      held_ += part;
      if (end < room || part.size() == room) this->end(out);
      bytes.remove_prefix(part.size());
    }
  }

  /// End of output: appends the unfinished line, with an end of line.
  void end(std::string& out) {
    if (held_.empty()) return;
    out += label_;
    out += held_;
    if (held_.back() != '\n') out += '\n';
    held_.clear();
  }

 private:
  std::string label_, held_;
  std::size_t longest_;
};

}  // namespace meshpost::launch
