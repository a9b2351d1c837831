// Copies from and to exposed memory.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "copy/job/state.hpp"
#include "copy/locate.hpp"
#include "copy/order.hpp"
#include "copy/together.hpp"
#include "copy/workers.hpp"

namespace meshpost {
namespace {

using copying::HostState;
using copying::OtherMemory;
using copying::StatePtr;

constexpr u64 bounce_bytes = u64{4} << 20;

// While it lives, the JobMemory's end waits.
class Counted {
 public:
  explicit Counted(std::shared_ptr<JobMemory::State> job) : job_(std::move(job)) {
    job_->begin_copy();
  }
  ~Counted() { job_->end_copy(); }
  Counted(Counted const&) = delete;
  Counted& operator=(Counted const&) = delete;

 private:
  std::shared_ptr<JobMemory::State> job_;
};

}  // namespace

/// One copy between memory of this process and exposed memory. A plain value.
class RemoteCopy {
 public:
  enum class Way : u8 { put, get };
  /// \throws Error(bad_argument) for what can't be in this process
  RemoteCopy(Way way, RemoteBytes const& there, void* here)
      : way_(way), there_(there), here_(static_cast<char*>(here)) {
    if (there.size() == 0) return;
    host_ =
        copying::locate(here, there.size(), name(), way == Way::put ? "source" : "target").on_host;
  }

  void make() const {
    if (there_.size() == 0) return;
    Counted const counted(job());
    make_counted();
  }
  StatePtr start(CopyOptions const& options) const {
    if (!options.streams.empty()) {
      auto const counted = std::make_shared<Counted>(job());
      return copying::between(options.streams, {[*this, counted] { make_counted(); }, nullptr});
    }
    if (there_.size() == 0) return copying::finished();
    auto const counted = std::make_shared<Counted>(job());
    if (by_message()) {
      job()->check_alive(process());
      auto state = ask();
      state->event()->then([counted] {});
      return state;
    }
    auto state = std::make_shared<HostState>();
    copying::conductors().run([*this, state, counted] { state->run([&] { make_counted(); }); });
    return state;
  }
  void const* here() const { return here_; }
  RemoteBytes const& there() const { return there_; }
  auto place() const {  // for the order of targets
    return std::tuple(there_.exposure_.get(), there_.process_, there_.offset_);
  }
  u64 offset() const { return there_.offset_; }

 private:
  std::shared_ptr<JobMemory::State> const& job() const { return there_.exposure_->job; }
  u32 process() const { return there_.process_; }
  copying::Part const& part() const { return there_.exposure_->parts[process()]; }
  CopyPath path() const { return there_.exposure_->known[process()].path; }
  bool by_message() const { return path() == CopyPath::staged || path() == CopyPath::network; }
  std::string name() const {
    return fmt::format("copy {} bytes {} '{}'", there_.size().value,
                       way_ == Way::put ? "to" : "from", there_.exposure_->name);
  }
  std::string owner() const {
    return job()->peers.alone() ? "this process" : job()->peers.processes().name(process());
  }

  void make_counted() const {
    if (there_.size() == 0) return;
    job()->check_alive(process());
    if (by_message()) return ask()->wait();
    copying::Entry const entry(job()->gate, process(), part().slot, there_.exposure_->number);
    if (!entry)
      throw Error(Kind::bad_argument, name(), fmt::format("{} has released its part", owner()),
                  "keep its Exposed until nobody copies from or to it");
    if (path() == CopyPath::kernel) return by_kernel();
    char* const begin = there_.exposure_->here[process()] + there_.offset_;
    if (way_ == Way::put) copy(begin, here_, there_.size());
    else copy(here_, begin, there_.size());
  }

  StatePtr ask() const {
    auto const kind = way_ == Way::put ? copying::Message::Kind::put : copying::Message::Kind::get;
    return job()->courier.ask(job()->desk(path()), {kind, process(), there_.exposure_->number,
                                                    there_.offset_, here_, there_.size()});
  }

  void by_kernel() const {
    u64 const begin = part().address + there_.offset_;
    auto const& other = job()->other;
    auto const way = way_ == Way::put ? OtherMemory::Way::write : OtherMemory::Way::read;
    if (host_) return other.copy(way, process(), begin, here_, there_.size());
    // The system knows no devices: by way of the host, in pieces.
    std::vector<char> bounce(std::min<u64>(bounce_bytes, there_.size()));
    for (u64 at = 0; at < there_.size(); at += bounce.size()) {
      Bytes const size{std::min<u64>(bounce.size(), there_.size() - at)};
      if (way_ == Way::put) copy(bounce.data(), here_ + at, size);
      other.copy(way, process(), begin + at, bounce.data(), size);
      if (way_ == Way::get) copy(here_ + at, bounce.data(), size);
    }
  }

  Way way_;
  RemoteBytes there_;
  char* here_;
  bool host_ = true;
};

namespace {

using Way = RemoteCopy::Way;

// What is only read may be const; no way writes to it.
RemoteCopy put(RemoteBytes const& target, void const* source) {
  return {Way::put, target, const_cast<void*>(source)};
}
RemoteCopy get(void* target, RemoteBytes const& source) { return {Way::get, source, target}; }

[[noreturn]] void refuse_overlap(u64 one, u64 other) {
  throw Error(Kind::bad_argument, "batch of copies between processes",
              fmt::format("copies {} and {} write the same bytes", std::min(one, other),
                          std::max(one, other)),
              "give targets that don't overlap, or batches one after the other");
}

// Ascending targets: neighbours tell. `meets`: whether the second begins before the first ends.
template <class Before, class Meets>
void refuse_overlaps(std::vector<RemoteCopy> const& copies, Before before, Meets meets) {
  std::vector<u64> order;
  for (u64 i = 0; i < copies.size(); ++i)
    if (copies[i].there().size() != 0) order.push_back(i);
  std::ranges::sort(order, [&](u64 a, u64 b) { return before(copies[a], copies[b]); });
  for (u64 i = 1; i < order.size(); ++i)
    if (meets(copies[order[i - 1]], copies[order[i]])) refuse_overlap(order[i - 1], order[i]);
}

Copy start_all(std::vector<RemoteCopy> copies, CopyOptions const& options) {
  auto const start = [](std::vector<RemoteCopy> const& all) {
    std::vector<StatePtr> states;
    for (auto const& one : all) states.push_back(one.start({}));
    return std::make_shared<copying::Together>(std::move(states));
  };
  if (options.streams.empty()) return Copy(start(copies));
  return Copy(copying::between(
      options.streams, {[start, copies = std::move(copies)] { start(copies)->wait(); }, nullptr}));
}

}  // namespace

void copy(RemoteBytes const& target, void const* source) { put(target, source).make(); }
void copy(void* target, RemoteBytes const& source) { get(target, source).make(); }

Copy copy_async(RemoteBytes const& target, void const* source, CopyOptions const& options) {
  return Copy(put(target, source).start(options));
}
Copy copy_async(void* target, RemoteBytes const& source, CopyOptions const& options) {
  return Copy(get(target, source).start(options));
}

Copy copy_batch(std::span<RemotePut const> puts, CopyOptions const& options) {
  std::vector<RemoteCopy> copies;
  for (auto const& one : puts) copies.push_back(put(one.target, one.source));
  refuse_overlaps(
      copies, [](auto const& a, auto const& b) { return a.place() < b.place(); },
      [](RemoteCopy const& a, RemoteCopy const& b) {
        auto const [exposure, process, offset] = a.place();
        auto const [next_exposure, next_process, next_offset] = b.place();
        return exposure == next_exposure && process == next_process &&
               next_offset - offset < a.there().size();
      });
  return start_all(std::move(copies), options);
}

Copy copy_batch(std::span<RemoteGet const> gets, CopyOptions const& options) {
  std::vector<RemoteCopy> copies;
  for (auto const& one : gets) copies.push_back(get(one.target, one.source));
  auto const begin = [](RemoteCopy const& one) { return reinterpret_cast<u64>(one.here()); };
  refuse_overlaps(
      copies, [&](auto const& a, auto const& b) { return begin(a) < begin(b); },
      [&](auto const& a, auto const& b) { return begin(b) - begin(a) < a.there().size(); });
  return start_all(std::move(copies), options);
}

// -- ranges

std::string_view to_string(CopyPath path) {
  switch (path) {
    case CopyPath::own: return "own";
    case CopyPath::mapped: return "mapped";
    case CopyPath::kernel: return "kernel";
    case CopyPath::staged: return "staged";
    case CopyPath::network: return "network";
  }
  return "?";
}

ExposedPart const& Exposed::part(u32 process) const {
  if (!exposure_)
    throw Error(Kind::misuse, "ask for exposed memory", "this Exposed is empty",
                "use the one that expose() returned, before release() and not after a move");
  if (process >= exposure_->known.size())
    throw Error(Kind::bad_argument, fmt::format("ask for a part of '{}'", exposure_->name),
                fmt::format("there is no process {}", process),
                fmt::format("there are {}, counted from 0", exposure_->known.size()));
  return exposure_->known[process];
}

RemoteBytes Exposed::at(u32 process, u64 offset, Bytes size) const {
  auto const& known = part(process);
  if (offset > known.size || size > known.size - offset)
    throw Error(Kind::bad_argument,
                fmt::format("take a range of process {}'s part of '{}'", process, exposure_->name),
                fmt::format("{} bytes at offset {} of {}", size.value, offset, known.size.value),
                "stay inside; part() says how large it is");
  return {exposure_, process, offset, size};
}

void Exposed::release() {
  if (!exposure_) return;
  exposure_->job->release(exposure_->number);
  exposure_ = nullptr;
}

}  // namespace meshpost
