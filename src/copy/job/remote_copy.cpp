#include "copy/job/remote_copy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "copy/order.hpp"
#include "copy/request.hpp"
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
  JobMemory::State& job() const { return *job_; }

 private:
  std::shared_ptr<JobMemory::State> job_;
};

// A copy in streams that is inside exposed memory until it is known to be done: nobody looks at a
// stream's events but who waits for them.
class Held : public Copy::State {
 public:
  struct Inside {
    Inside(std::shared_ptr<JobMemory::State> job, u32 process, u32 slot, u32 number)
        : counted(std::move(job)), epoch(counted.job().epochs, process, slot, number) {}
    Counted counted;
    copying::AccessEpoch epoch;
  };
  Held(Copy copy, std::unique_ptr<Inside> inside)
      : inside_(std::move(inside)), copy_(std::move(copy)) {}
  void wait() override {
    try {
      copy_.wait();
    } catch (...) {
      leave();  // it is over all the same
      throw;
    }
    leave();
  }
  bool done() override {
    bool const over = copy_.done();
    if (over) leave();
    return over;
  }
  std::shared_ptr<Event> event() override { return copy_.event(); }

 private:
  void leave() {
    std::scoped_lock const lock(mutex_);
    inside_.reset();
  }
  std::mutex mutex_;
  std::unique_ptr<Inside> inside_;
  Copy copy_;  // goes first, and waits
};

}  // namespace

RemoteCopy::RemoteCopy(Way way, RemoteBytes const& there, void* here, Block const& block)
    : RemoteCopy(way, there, here) {
  block_ = block;
  auto const& [mine, other, shape] = block;
  if (block_bytes() == 0) return;
  copying::check_pitches({here, mine.row, mine.slice, here, other.row, other.slice, shape.width,
                          shape.rows, shape.slices});
  u64 const needed = copying::extent_of(other, shape);
  if (needed > there.size())
    throw Error(Kind::bad_argument, name(),
                fmt::format("the block reaches over {} bytes, its range has {}", needed,
                            there.size().value),
                "give the range from its first row's beginning to its last row's end");
}

std::string RemoteCopy::name() const {
  return fmt::format("copy {} bytes {} '{}'", block_ ? block_bytes() : there_.size().value,
                     way_ == Way::put ? "to" : "from", there_.exposure_->name);
}

Error RemoteCopy::released() const {
  auto const owner =
      job()->group.alone() ? "this process" : job()->group.processes().name(process());
  return {Kind::bad_argument, name(), fmt::format("{} has released its part", owner),
          "keep its Exposed until nobody copies from or to it"};
}

copying::Location RemoteCopy::locate_here() const {
  u64 const size = block_ ? copying::extent_of(block_->here, block_->shape) : there_.size().value;
  try {
    return copying::locate(here_, size, "copy", way_ == Way::put ? "source" : "target");
  } catch (Error const& error) {  // the name takes longer than a small copy
    throw Error(error.kind(), name(), error.cause(), error.remedy());
  }
}

void RemoteCopy::make() const {
  copying::check_caller("copy");
  if (nothing()) return;
  Counted const counted(job());
  make_counted();
}

StatePtr RemoteCopy::start(CopyOptions const& options) const {
  copying::check_caller("copy");
  if (nothing() && options.streams.empty()) return copying::finished();
  if (nothing()) return copying::between(options.streams, {[] {}, [](Stream&) {}});
  locate_here();
  if (!options.streams.empty() && by_address()) return start_held(options);
  auto const counted = std::make_shared<Counted>(job());
  if (by_message()) {
    auto const begin = [*this, counted] {
      auto state = begin_asking();
      copying::when_done(state, [counted] {});
      return state;
    };
    if (!options.streams.empty())
      return copying::between(options.streams, {nullptr, nullptr, begin});
    if (!block_) return begin();
    auto state = std::make_shared<HostState>();  // rows take a while to be asked for
    copying::conductors().run([state, begin] { copying::follow(state, begin); });
    return state;
  }
  if (!options.streams.empty())
    return copying::between(options.streams, {[*this, counted] { make_counted(); }, nullptr});
  auto state = std::make_shared<HostState>();
  copying::conductors().run([*this, state, counted] { state->run([&] { make_counted(); }); });
  return state;
}

StatePtr RemoteCopy::begin_asking() const {
  job()->check_alive(process());
  if (!block_) return ask();
  return copying::gather(
      copying::start_each(rows(), [](RemoteCopy const& row) { return row.ask(); }));
}

StatePtr RemoteCopy::start_held(CopyOptions const& options) const {
  auto inside =
      std::make_unique<Held::Inside>(job(), process(), part().slot, there_.exposure_->number);
  job()->check_alive(process());
  if (!inside->epoch) throw released();
  return std::make_shared<Held>(start_by_address(options), std::move(inside));
}

Copy RemoteCopy::start_by_address(CopyOptions const& options) const {
  auto const [mine, other, shape] = block_.value_or(Block{{}, {}, {Bytes{there_.size()}, 1, 1}});
  if (way_ == Way::put) return copy_async(begin_here(), other, here_, mine, shape, options);
  return copy_async(here_, mine, begin_here(), other, shape, options);
}

void RemoteCopy::make_counted() const {
  if (by_message()) return begin_asking()->wait();
  job()->check_alive(process());
  copying::AccessEpoch const epoch(job()->epochs, process(), part().slot, there_.exposure_->number);
  if (!epoch) throw released();
  make_inside();
}

void RemoteCopy::make_inside() const {
  if (path() == CopyPath::kernel && block_)
    for (auto const& row : rows()) row.by_kernel();
  else if (path() == CopyPath::kernel) by_kernel();
  else if (block_) start_by_address({}).wait();
  else if (way_ == Way::put) copy(begin_here(), here_, there_.size());
  else copy(here_, begin_here(), there_.size());
}

std::vector<RemoteCopy> RemoteCopy::rows() const {
  std::vector<RemoteCopy> all;
  auto const& [mine, other, shape] = *block_;
  for (u64 slice = 0; slice < shape.slices; ++slice)
    for (u64 row = 0; row < shape.rows; ++row) {
      RemoteBytes const there(there_.exposure_, there_.process_, shape.width,
                              there_.offset_ + slice * other.slice + row * other.row);
      all.emplace_back(way_, there, here_ + slice * mine.slice + row * mine.row);
    }
  return all;
}

StatePtr RemoteCopy::ask() const {
  locate_here();
  auto const kind = way_ == Way::put ? copying::Message::Type::put : copying::Message::Type::get;
  return job()->ask(path(), {.type = kind,
                             .process = process(),
                             .exposure = there_.exposure_->number,
                             .offset = there_.offset_,
                             .here = here_,
                             .size = there_.size()});
}

void RemoteCopy::by_kernel() const {
  u64 const begin = part().address + there_.offset_;
  auto const& other = job()->other;
  auto const way = way_ == Way::put ? OtherMemory::Way::write : OtherMemory::Way::read;
  if (locate_here().on_host) return other.copy(way, process(), begin, here_, there_.size());
  // The system knows no devices: by way of the host, in pieces.
  std::vector<char> bounce(std::min<u64>(bounce_bytes, there_.size()));
  for (u64 at = 0; at < there_.size(); at += bounce.size()) {
    Bytes const size{std::min<u64>(bounce.size(), there_.size() - at)};
    if (way_ == Way::put) copy(bounce.data(), here_ + at, size);
    other.copy(way, process(), begin + at, bounce.data(), size);
    if (way_ == Way::get) copy(here_ + at, bounce.data(), size);
  }
}

}  // namespace meshpost
