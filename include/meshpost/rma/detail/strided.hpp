#pragma once
#include "meshpost/rma/delivery.hpp"
#include "meshpost/rma/rank.hpp"

// Puts of strided pieces: checks, a plan of loops (StridedCopy), then the direct protocol
// (via/direct/write.hpp) with another copy in its step 1. Only the direct protocol orders messages:
// a strided put_notify is a put, then a notify. A piece that is one run is a contiguous put.

namespace meshpost {
namespace detail {

template <class Side>
MESHPOST_FN StridedLayout layout_or(Side const& side, Extents3 extents) {
  if constexpr (requires { side.layout; }) return side.layout;
  else return StridedLayout::dense(extents);
}

struct LayoutFault {
  Fault fault = Fault::none;
  u64 a = 0, b = 0, c = 0;
};

MESHPOST_COLD inline LayoutFault fault_of(StridedLayout const& target,
                                          StridedLayout const& source) {
  if (!target.valid() || !source.valid()) return {Fault::layout};
  Extents3 const& there = target.extents;
  Extents3 const& here = source.extents;
  if (there.x != here.x) return {Fault::extents, 0, there.x, here.x};
  if (there.y != here.y) return {Fault::extents, 1, there.y, here.y};
  if (there.z != here.z) return {Fault::extents, 2, there.z, here.z};
  if (!target.is_unique())
    return {Fault::interleave, target.strides.x, target.strides.y, target.strides.z};
  return {};
}

}  // namespace detail

template <class Target, class Source>
MESHPOST_FN via::Location Rank::begin_strided_put(Operation operation, Target const& target,
                                                  Source const& source, StridedCopy& copy) {
  auto const& there = detail::span_of(target);
  auto const& here = detail::span_of(source);
  block_.tick();
  Subject const subject(operation, there.window().number);
  Location const to = locate(operation, there.window(), there.rank());
  check_source(subject, here);
  // A side without a layout is packed, in the order of the other side's layout.
  StridedLayout const from = detail::layout_or(source, detail::layout_or(target, {}).extents);
  StridedLayout const onto = detail::layout_or(target, from.extents);
  if (auto const wrong = detail::fault_of(onto, from); wrong.fault != Fault::none)
    fail(subject, wrong.fault, wrong.a, wrong.b, wrong.c);
  if constexpr (!requires { source.layout; })
    if (here.size() != from.reach()) fail(subject, Fault::size, here.size(), from.reach());
  if (from.reach() > here.size())
    fail(subject, Fault::reach, from.reach(), here.size(), 0, "source");
  if (onto.reach() > there.count())
    fail(subject, Fault::reach, onto.reach(), there.count(), 0, "target");
  check_range(subject, there.offset(), onto.reach(), to.count);
  constexpr u64 element = sizeof(*here.data());
  copy = plan_strided_copy(to.data + there.offset() * element, onto, here.data(), from, element);
  if (delivery::checked(state_->ledger) && thread() == 0)
    copy.each_run([&](char*, char const* run) {
      delivery::use(state_->ledger, block_, operation, id_, run, copy.run);
    });
  return to;
}

MESHPOST_FN inline void Rank::move(Location const& to, StridedCopy const& copy) {
  if (copy.loops == 0) return move(to, copy.target, copy.source, copy.run);
  block_.sync();  // what the other threads packed into the source is complete
  if (copy.in_place() || !block_.step(hooks::Step::put_copy)) return;
  if (delivery::checked(state_->ledger)) {
    if (thread() == 0)
      copy.each_run([&](char* target, char const* source) {
        delivery::put(state_->ledger, block_, id_, to.rank, target, source, copy.run);
      });
    return;
  }
  via::write(*this, Operation::put, to, copy);
}

MESHPOST_FN inline void Rank::move_and_raise(Location const& to, StridedCopy const& copy,
                                             Location const& counters, Tag tag) {
  if (copy.loops == 0) return move_and_raise(to, copy.target, copy.source, copy.run, counters, tag);
  move(to, copy);
  raise(counters, tag);
}

template <class Target, class Source>
  requires detail::StridedPut<Target, Source>
MESHPOST_FN void Rank::put(Target const& target, Source const& source) {
  StridedCopy copy;
  Location const to = begin_strided_put(Operation::put, target, source, copy);
  Traced const traced(*this, Operation::put, to.rank, detail::span_of(target).window().number, 0,
                      copy.bytes());
  move(to, copy);
}

template <class Target, class Source>
  requires detail::StridedPut<Target, Source>
MESHPOST_FN void Rank::put_notify(Target const& target, Source const& source, Tag tag) {
  StridedCopy copy;
  Location const to = begin_strided_put(Operation::put_notify, target, source, copy);
  check_tag(Subject(Operation::put_notify, detail::span_of(target).window().number), to.tags, tag);
  Traced const traced(*this, Operation::put_notify, to.rank,
                      detail::span_of(target).window().number, tag.value, copy.bytes());
  move_and_raise(to, copy, to, tag);
}

template <class Target, class Source, class U>
  requires detail::StridedPut<Target, Source>
MESHPOST_FN void Rank::put_notify(Target const& target, Source const& source,
                                  Window<U> const& counters, Tag tag) {
  StridedCopy copy;
  Location const to = begin_strided_put(Operation::put_notify, target, source, copy);
  WindowInfo const& info = counters.info();
  check_counters(info, tag);
  Traced const traced(*this, Operation::put_notify, to.rank, info.number, tag.value, copy.bytes());
  move_and_raise(to, copy, locate_uniform(info, to.rank), tag);
}

}  // namespace meshpost
