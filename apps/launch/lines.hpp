#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace meshpost::launch {

/// Cuts what a process prints into whole lines with a label, so that those of several processes
/// can be put one behind the other.
class Lines {
 public:
  /// A line that grows longer than `longest` bytes is broken there: memory is not endless.
  explicit Lines(std::string label, std::size_t longest = std::size_t{16} << 20)
      : label_(std::move(label)), longest_(longest) {}

  /// Takes what was printed next; appends the lines that are whole by now to `out`.
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

  /// There is no more: appends what had no end of line, with one.
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
