// Exchanges by a plan on streams: how they are made. src/on_stream/exchange.cpp has the rest.
#include "meshpost/array/stream_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include "array/exchange_lists.hpp"
#include "meshpost/array/exchange.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/rma/roles.hpp"
#include "on_stream/endpoint.hpp"

namespace meshpost::detail {

constexpr char const* make_name = "make an exchange on streams";

// clang-format off
constexpr char const* number_names[] = {"no numbers", "int8", "uint8", "int16", "uint16", "int32",
                                        "uint32", "int64", "uint64", "float32", "float64"};
// clang-format on

class StreamExchangeState {
 public:
  StreamExchangeState(World& world, Plan const& plan, StreamExchangeBase::Element const& element,
                      StreamExchangeBase::Streams const& streams, std::string const& name,
                      std::source_location where);

  struct End {
    std::weak_ptr<EndpointState> stream;
    ExchangeEnd end;
  };
  struct Found {
    std::shared_ptr<EndpointState> stream;
    ExchangeEnd& end;
  };
  Found end(char const* operation, u32 device);
  u32 count() const { return static_cast<u32>(ends_.size()); }
  StreamNumber number() const { return number_; }
  void free(World& world, std::source_location where = std::source_location::current()) const;

 private:
  void exchange_ids(World const& world, Plan const& plan,
                    StreamExchangeBase::Element const& element,
                    StreamExchangeBase::Streams const& streams, std::string const& name);
  void make_windows(World& world, Plan::Most const& most, u64 element, std::string const& name,
                    std::source_location where);
  ExchangeParts parts_of(World const& world, Plan const& plan, u32 part,
                         StreamExchangeBase::Element const& element) const;

  StreamNumber number_;
  bool any_far_ = false;         // between any devices
  std::vector<StreamId> ids_{};  // by part
  Window<std::byte> outgoing_, arrivals_;
  Window<u64> table_;
  std::vector<End> ends_;
};

StreamExchangeState::StreamExchangeState(World& world, Plan const& plan,
                                         StreamExchangeBase::Element const& element,
                                         StreamExchangeBase::Streams const& streams,
                                         std::string const& name, std::source_location where)
    : number_(element.number) {
  exchange_ids(world, plan, element, streams, name);
  try {  // all processes throw, or none
    make_windows(world, plan.most(), element.bytes, name, where);
    auto const state = world_of(world.communicator().world, make_name);
    state->group().together(fmt::format("{} '{}'", make_name, name), [&] {
      for (u32 i = 0; i < plan.part_count(); ++i) {
        auto const& stream = streams[i].get().state();
        ends_.push_back(
            {stream, stream->make_end(parts_of(world, plan, plan.first_part() + i, element))});
      }
    });
  } catch (...) {
    try {
      free(world, where);
    } catch (std::exception const& error) {
      warn(error.what());  // the first error is thrown
    }
    throw;
  }
}

// Checks what may be wrong in one process alone, and tells all processes of all streams.
void StreamExchangeState::exchange_ids(World const& world, Plan const& plan,
                                       StreamExchangeBase::Element const& element,
                                       StreamExchangeBase::Streams const& streams,
                                       std::string const& name) {
  auto const state = world_of(world.communicator().world, make_name);
  auto const of_world = Streams::of(world.communicator().world);
  auto const refuse = [&](std::string cause, std::string remedy) {
    throw Error(Kind::bad_argument, fmt::format("{} '{}'", make_name, name), std::move(cause),
                std::move(remedy));
  };
  auto const check = [&] {
    check_parts(world, plan, make_name);
    if (streams.size() != world.devices().size())
      refuse(fmt::format("{} streams were given; this process has {} devices", streams.size(),
                         world.devices().size()),
             "give one stream of each device, in the order of World::devices()");
    std::string ids(1, state->layout().any_far() ? 'f' : 'n');
    for (u32 i = 0; i < streams.size(); ++i) {
      auto const& stream = streams[i].get().state();
      if (!stream) refuse(fmt::format("stream {} was moved from", i), "give the one that has it");
      if (&stream->streams() != of_world.get())
        refuse(fmt::format("stream {} is of another World", i), "give streams of this World");
      if (stream->own() != i)
        refuse(fmt::format("stream {} is of {}, not of {}", i,
                           world.devices()[stream->own()]->name(), world.devices()[i]->name()),
               "give one stream of each device, in the order of World::devices()");
      stream->check_well(make_name);
      ids += static_cast<char>('0' + stream->id().number);
    }
    return ids;
  };
  auto const all = state->group().gather(
      fmt::format("{} '{}' by plan {}, elements of {} bytes, aligned to {}, {}", make_name, name,
                  plan.fingerprint(), element.bytes, element.alignment,
                  number_names[static_cast<u32>(element.number)]),
      check);
  for (auto const& one : all) {
    any_far_ |= one.front() == 'f';
    for (char const number : one.substr(1))
      ids_.push_back({static_cast<u32>(ids_.size()), static_cast<u32>(number - '0')});
  }
}

void StreamExchangeState::make_windows(World& world, Plan::Most const& most, u64 element,
                                       std::string const& name, std::source_location where) {
  // A device's memory is the part of its first rank.
  auto const parts = [&](u64 count) {
    std::vector<Extent> all(world.size());
    for (u32 rank = 0; rank < all.size(); rank += world.ranks_per_device()) all[rank].count = count;
    return all;
  };
  arrivals_ = world.window<std::byte>(parts(2 * most.received * element),
                                      Tags{2 * world.device_count()}, name, where);
  table_ =
      world.window<u64>(parts(ExchangeParts::table_words(most.entries, most.sent, most.received)),
                        Tags{0}, name + ", table", where);
  if (any_far_)
    outgoing_ =
        world.window<std::byte>(parts(most.sent * element), Tags{0}, name + ", outgoing", where);
}

ExchangeParts StreamExchangeState::parts_of(World const& world, Plan const& plan, u32 part,
                                            StreamExchangeBase::Element const& element) const {
  auto const& of_part = plan.of(part);
  RankId const rank{part * world.ranks_per_device()};
  ExchangeParts parts;
  parts.arrivals = arrivals_.info();
  parts.half = plan.most().received * element.bytes;
  parts.parts = world.device_count();
  if (any_far_) parts.outgoing = reinterpret_cast<char*>(outgoing_.part(rank).data());
  parts.own = reinterpret_cast<char const*>(arrivals_.part(rank).data());
  parts.table = table_.part(rank).data();
  parts.element = element.bytes, parts.alignment = element.alignment;
  parts.number = element.number;
  parts.room = of_part.size();
  auto const pieces_of = [&](std::vector<PlanEntry> const& entries,
                             std::vector<PlanEntry> const& back) {
    std::vector<ExchangeParts::Piece> pieces;
    pieces.reserve(entries.size());
    for (auto const& entry : entries)
      pieces.push_back(
          {.peer = ids_[entry.part],
           .first = entry.offset,
           .count = entry.count,
           .there = entry.there,
           .both = std::ranges::binary_search(back, entry.part, std::less(), &PlanEntry::part)});
    return pieces;
  };
  parts.sends = pieces_of(of_part.sends, of_part.receives);
  parts.receives = pieces_of(of_part.receives, of_part.sends);
  auto const& sent = of_part.sent;
  bool any_listed = false;
  for (auto& piece : parts.sends) {
    bool const consecutive = sent.consecutive(piece.first, piece.first + piece.count);
    if (consecutive) piece.source = sent[piece.first];
    any_listed |= !consecutive;
  }
  if (any_listed) parts.sent = sent.list;
  parts.sent_count = sent.count;
  parts.first_received = of_part.received.first, parts.received_count = of_part.received.count;
  if (!of_part.received.consecutive()) {
    ExchangeTargets targets(of_part.received.list);
    parts.received_count = targets.places.size();
    parts.targets = std::move(targets.places);
    parts.begins = std::move(targets.begins), parts.numbers = std::move(targets.numbers);
  }
  return parts;
}

StreamExchangeState::Found StreamExchangeState::end(char const* operation, u32 device) {
  if (device >= ends_.size())
    throw Error(Kind::bad_argument, operation,
                fmt::format("device {} was named; this process has {}", device, ends_.size()),
                "name a device by its number in World::devices()");
  auto& [weak, end] = ends_[device];
  auto stream = weak.lock();
  if (!stream)
    throw Error(Kind::misuse, operation,
                fmt::format("the stream of device {} does not exist any more", device),
                "keep the StreamEndpoint alive while the exchange is used");
  return {std::move(stream), end};
}

void StreamExchangeState::free(World& world, std::source_location where) const {
  auto const end = [&](auto const& window) {
    if (window.info().number != 0) world.free(window, where);
  };
  end(arrivals_), end(table_), end(outgoing_);
}

StreamExchangeBase::StreamExchangeBase(World& world, Plan const& plan, Element const& element,
                                       Streams const& streams, std::string const& name,
                                       std::source_location where)
    : state_(std::make_shared<StreamExchangeState>(world, plan, element, streams, name, where)) {}

StreamExchangeState& StreamExchangeBase::state(char const* operation) const {
  if (state_) return *state_;
  throw Error(Kind::misuse, operation, "this StreamExchange was made without a plan",
              "make it from a World, a plan and streams");
}

namespace {

constexpr char const* step_name = "StreamExchange::exchange";

void check_combine(char const* operation, StreamNumber number, StreamCombine combine) {
  if (combine == StreamCombine::replace || number != StreamNumber::none) return;
  throw Error(Kind::bad_argument, operation, "the elements are no numbers, and can't be combined",
              "replace them, or exchange numbers of 1 to 8 bytes");
}

}  // namespace

void StreamExchangeBase::start(u32 device, void const* source, u64 count,
                               std::source_location where) const {
  constexpr auto name = "StreamExchange::start";
  auto const [stream, end] = state(name).end(name, device);
  stream->start(end, source, count, where);
}

void StreamExchangeBase::finish(u32 device, void* target, u64 count, StreamCombine combine,
                                std::source_location where) const {
  constexpr auto name = "StreamExchange::finish";
  auto& all = state(name);
  auto const [stream, end] = all.end(name, device);
  check_combine(name, all.number(), combine);
  stream->finish(end, target, count, combine, where);
}

// A step that can't be carried out begins on no device. If a stream fails nevertheless, those that
// have started finish. The caller's arrays are in use until all of them are done.
void StreamExchangeBase::all(std::vector<Source> const& sources, std::vector<Target> const& targets,
                             StreamCombine combine, std::source_location where) const {
  auto& all = state(step_name);
  check_combine(step_name, all.number(), combine);
  if (sources.size() != all.count() || targets.size() != all.count())
    throw Error(Kind::bad_argument, step_name,
                fmt::format("{} sources and {} targets were given; this process has {} devices",
                            sources.size(), targets.size(), all.count()),
                "give an array of each device, in the order of World::devices()");
  for (u32 i = 0; i < all.count(); ++i) {
    auto const [stream, end] = all.end(step_name, i);
    stream->check_step(end, {.source = sources[i].data,
                             .source_count = sources[i].count,
                             .target = targets[i].data,
                             .target_count = targets[i].count});
  }
  std::exception_ptr first;
  auto const keep = [&](auto const& work) {
    try {
      work();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  };
  u32 started = 0;
  keep([&] {
    for (; started < all.count(); ++started)
      start(started, sources[started].data, sources[started].count, where);
  });
  for (u32 i = 0; i < started; ++i)
    keep([&] { finish(i, targets[i].data, targets[i].count, combine, where); });
  for (u32 i = 0; i < all.count(); ++i) keep([&] { all.end(step_name, i).stream->synchronize(); });
  if (first) std::rethrow_exception(first);
}

u64 StreamExchangeBase::size(u32 device) const {
  constexpr auto name = "StreamExchange::size";
  return state(name).end(name, device).end.room;
}

std::string StreamExchangeBase::explain(u32 device) const {
  constexpr auto name = "StreamExchange::explain";
  auto const [stream, end] = state(name).end(name, device);
  return stream->explain(end);
}

void StreamExchangeBase::free(World& world) const { state("free_exchange").free(world); }

}  // namespace meshpost::detail
