#include "meshpost/array/coherence.hpp"

#include <fmt/format.h>

#include "array/coherence_state.hpp"
#include "base/caught.hpp"
#include "base/fork.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/base/events.hpp"

namespace meshpost::detail {

std::string short_text(std::source_location where) {
  std::string_view file = where.file_name();
  if (auto const slash = file.rfind('/'); slash != file.npos) file.remove_prefix(slash + 1);
  return fmt::format("{}:{}", file, where.line());
}

std::string LiveAccess::State::title() const {
  return name.empty() ? "an array without a name" : fmt::format("array '{}'", name);
}

Bytes LiveAccess::State::bytes_of(u64 elements) const {
  constexpr u64 most = u64{1} << 62;
  if (elements > most / element)
    throw Error(
        Kind::bad_argument, fmt::format("size of {}", title()),
        fmt::format("{} elements of {} bytes are more than 2^62 bytes", elements, element.value),
        "give a smaller size");
  return Bytes{elements * element};
}

std::string LiveAccess::State::operation(char const* what, Context const& at,
                                         std::source_location where) const {
  return fmt::format("{} at {} of {} ({})", what, at.name(), title(), short_text(where));
}

void LiveAccess::State::warn_of(char const* what, Context const& at,
                                std::source_location where) const noexcept {
  try {
    warn(fmt::format("{}: {}", operation(what, at, where), caught(what).what()));
  } catch (...) {
    warn("work on an array failed, and there is no memory for the text");
  }
}

LiveAccess::LiveAccess(std::shared_ptr<State> state, Entry* entry)
    : state_(std::move(state)),
      entry_(entry),
      data_(entry->home->memory.data()),
      size_(state_->bytes()) {
  if (size_ == 0) data_ = nullptr;
}

LiveAccess::LiveAccess(LiveAccess&& other) noexcept
    : state_(std::move(other.state_)),
      entry_(std::exchange(other.entry_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, Bytes{})) {}

LiveAccess& LiveAccess::operator=(LiveAccess&& other) noexcept {
  if (this == &other) return *this;
  release();
  state_ = std::move(other.state_);
  entry_ = std::exchange(other.entry_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, Bytes{});
  return *this;
}

Context const& LiveAccess::context(char const* operation) const {
  if (!entry_)
    throw Error(Kind::misuse, operation, "the access has ended, or was moved from",
                "call it before release()");
  return *entry_->home->at;
}

void LiveAccess::release() noexcept {
  if (!entry_) return;
  auto* const entry = std::exchange(entry_, nullptr);
  data_ = nullptr;
  size_ = {};
  if (leave_to_parent(state_)) return;
  state_->end(entry);
  state_ = nullptr;
}

void LiveAccess::release_after(std::shared_ptr<Event> event) {
  context("release_after");
  if (!event)
    throw Error(Kind::bad_argument, "release_after", "the event is null",
                "give the one of Stream::record() or Copy::event()");
  state_->end_after(std::exchange(entry_, nullptr), std::move(event));
  data_ = nullptr;
  size_ = {};
  state_ = nullptr;
}

CoherentBytes::CoherentBytes(u64 elements, Bytes element, std::string name)
    : state_(std::make_shared<LiveAccess::State>(element, std::move(name))) {
  state_->set_elements(elements);
}

CoherentBytes::~CoherentBytes() {
  if (state_ && !leave_to_parent(state_)) state_->abandon();
}

CoherentBytes& CoherentBytes::operator=(CoherentBytes&& other) noexcept {
  if (this == &other) return *this;
  CoherentBytes const old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

LiveAccess::State& CoherentBytes::state() const {
  if (state_) return *state_;
  throw Error(Kind::misuse, "use of an array", "it was moved from",
              "use the array that it was moved to");
}

LiveAccess CoherentBytes::access(At const& at, AccessMode mode, std::source_location where) const {
  return state().access(at.context(), mode, where);
}
std::shared_ptr<Event> CoherentBytes::prefetch(At const& at, std::source_location where) const {
  return state().prefetch(at.context(), where);
}
void CoherentBytes::drop(At const& at, std::source_location where) {
  state().drop(at.context(), where);
}
void CoherentBytes::resize(u64 elements, Contents contents, std::source_location where) {
  state().resize(elements, contents, where);
}
u64 CoherentBytes::elements() const { return state().elements(); }
bool CoherentBytes::valid_at(At const& at) const { return state().valid_at(at.context()); }
std::vector<ArrayCopies> CoherentBytes::copies() const { return state().all_copies(); }
std::string CoherentBytes::explain() const { return state().explain(); }

std::vector<ArrayCopies> LiveAccess::State::all_copies() {
  Lock const lock(mutex);
  note_arrivals();
  std::vector<ArrayCopies> all;
  all.reserve(counts.size());
  for (auto const& [pair, copied] : counts)
    all.push_back({pair.first, pair.second, copied.first, Bytes{copied.second}});
  return all;
}

std::string LiveAccess::State::explain() {
  auto const copies = all_copies();
  Lock const lock(mutex);
  auto text = fmt::format("{}, {} elements, {} bytes\n", title(), size / element, size.value);
  for (auto const& one : replicas)
    if (one.memory.data())
      text += fmt::format("  {:<12} {}\n", one.at->name(),
                          one.valid      ? "valid"
                          : one.arriving ? "a copy is on its way here"
                                         : "memory without valid contents");
  for (auto const& one : entries)
    text += fmt::format("  live: {} access at {}, taken at {}{}\n",
                        one.mode == AccessMode::read ? "read" : "write", one.at->name(),
                        short_text(one.where), one.after ? ", ends by an event" : "");
  u64 total = 0;
  for (auto const& one : copies) {
    text += fmt::format("  copied {} -> {}: {} times, {} bytes\n", one.source, one.target,
                        one.count, one.bytes.value);
    total += one.bytes;
  }
  return text + fmt::format("  copied in all: {} bytes\n", total);
}

}  // namespace meshpost::detail
