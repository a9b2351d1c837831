// The interface of copies from and to exposed memory.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/fork.hpp"
#include "copy/job/remote_copy.hpp"
#include "copy/order.hpp"
#include "copy/together.hpp"

namespace meshpost {
namespace {

using Way = RemoteCopy::Way;

// Memory that is only read may be const. No way writes to it.
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
  order.reserve(copies.size());
  for (u64 i = 0; i < copies.size(); ++i)
    if (copies[i].size() != 0) order.push_back(i);
  std::ranges::sort(order, [&](u64 a, u64 b) { return before(copies[a], copies[b]); });
  for (u64 i = 1; i < order.size(); ++i)
    if (meets(copies[order[i - 1]], copies[order[i]])) refuse_overlap(order[i - 1], order[i]);
}

Copy start_all(std::vector<RemoteCopy> copies, CopyOptions const& options) {
  copying::check_caller("batch of copies between processes");
  auto const begin = [copies = std::move(copies)] {
    return copying::gather(
        copying::start_each(copies, [](RemoteCopy const& one) { return one.start({}); }));
  };
  if (options.streams.empty()) return Copy(begin());
  return Copy(copying::between(options.streams, {nullptr, nullptr, begin}));
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

Copy copy_async(RemoteBytes const& target, Pitch target_pitch, void const* source,
                Pitch source_pitch, BlockShape shape, CopyOptions const& options) {
  RemoteCopy const block(Way::put, target, const_cast<void*>(source),
                         {source_pitch, target_pitch, shape});
  return Copy(block.start(options));
}
Copy copy_async(void* target, Pitch target_pitch, RemoteBytes const& source, Pitch source_pitch,
                BlockShape shape, CopyOptions const& options) {
  RemoteCopy const block(Way::get, source, target, {target_pitch, source_pitch, shape});
  return Copy(block.start(options));
}

Copy put_batch(std::span<RemotePut const> puts, CopyOptions const& options) {
  std::vector<RemoteCopy> copies;
  for (auto const& one : puts) copies.push_back(put(one.target, one.source));
  refuse_overlaps(
      copies, [](auto const& a, auto const& b) { return a.place() < b.place(); },
      [](RemoteCopy const& a, RemoteCopy const& b) {
        auto const [exposure, process, offset] = a.place();
        auto const [next_exposure, next_process, next_offset] = b.place();
        return exposure == next_exposure && process == next_process &&
               next_offset - offset < a.size();
      });
  return start_all(std::move(copies), options);
}

Copy get_batch(std::span<RemoteGet const> gets, CopyOptions const& options) {
  std::vector<RemoteCopy> copies;
  for (auto const& one : gets) copies.push_back(get(one.target, one.source));
  auto const begin = [](RemoteCopy const& one) { return reinterpret_cast<u64>(one.here()); };
  refuse_overlaps(
      copies, [&](auto const& a, auto const& b) { return begin(a) < begin(b); },
      [&](auto const& a, auto const& b) { return begin(b) - begin(a) < a.size(); });
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
  return {exposure_, process, size, offset};
}

void Exposed::release() {
  refuse_after_fork("release exposed memory");
  end();
}

void Exposed::end() {
  if (!exposure_ || leave_to_parent(exposure_)) return;
  exposure_->job->release(exposure_->number);
  exposure_ = nullptr;
}

}  // namespace meshpost
