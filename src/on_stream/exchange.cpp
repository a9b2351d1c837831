// Exchanges by a plan: an end, and what is put on its stream in each step.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/host_calls.hpp"
#include "on_stream/endpoint.hpp"

namespace meshpost::detail {
namespace {

constexpr char const* start_name = "StreamExchange::start";
constexpr char const* finish_name = "StreamExchange::finish";

template <class T>
constexpr u64 words_in = (sizeof(T) + sizeof(u64) - 1) / sizeof(u64);

// Lists one behind the other, as they will lie in the device's memory.
class ExchangeLists {
 public:
  explicit ExchangeLists(u64* at) : at_(at) {}
  template <class T>
  T* add(std::vector<T> const& values) {
    static_assert(sizeof(T) % sizeof(u64) == 0);
    u64 const begin = words_.size();
    words_.resize(begin + values.size() * words_in<T>);
    if (!values.empty())
      std::memcpy(words_.data() + begin, values.data(), values.size() * sizeof(T));
    return reinterpret_cast<T*>(at_ + begin);
  }
  template <class T>
  StreamList<T> list(std::vector<T> const& values) {
    StreamList<T> list{.all = add(values), .count = static_cast<u32>(values.size())};
    std::copy_n(values.begin(), std::min<u64>(values.size(), StreamList<T>::few), list.first);
    return list;
  }
  void write(Device& device) const {
    device.write(at_, words_.data(), Bytes{words_.size() * sizeof(u64)});
  }

 private:
  u64* at_;
  std::vector<u64> words_;
};

// Bytes that can be copied at once.
u32 unit_of(u64 element, void const* memory) {
  u64 const low = element | reinterpret_cast<u64>(memory) | 16;
  return static_cast<u32>(low & (~low + 1));
}

}  // namespace

u64 ExchangeParts::table_words(u64 entries, u64 sent, u64 received) {
  return 1 +
         entries * (words_in<StreamPiece> + 2 * words_in<AwaitedCounter> + words_in<u32*>)+sent +
         3 * received + 1;
}

ExchangeEnd EndpointState::make_end(ExchangeParts const& parts) {
  auto const use = begin("make an exchange on streams");
  auto& world = use.world();
  Destinations const destinations(world, id_);
  auto const& layout = world.layout();
  bool const on_host = stream_->on_host();
  ExchangeEnd end;
  end.window = parts.arrivals;
  {
    auto const lock = world.queue().now();
    end.name = world.windows().record_of(parts.arrivals, "make an exchange").name;
  }
  end.room = parts.room, end.alignment = parts.alignment;
  auto const call_to = [&](StreamCall::Verb verb, StreamId peer, Tag tag) {
    StreamCall call{.verb = verb, .window = parts.arrivals, .notified = peer, .tag = tag};
    call.rank = RankId{peer.device * layout.ranks_per_device};
    return call;
  };
  auto const awaited = [&](StreamId peer, Tag tag, StreamNote::Operation operation) {
    StreamCall call{.verb = StreamCall::wait, .window = parts.arrivals};
    call.awaited = {{tag, 1}};
    auto counter = destinations.awaited("make an exchange", call).awaited.front();
    counter.operation = operation, counter.peer = word_of(peer);
    if (!layout.far(own_, peer.device)) counter.raised_by_host = nullptr;
    return counter;
  };
  auto const note_way = [&](char const* preposition, ExchangeParts::Piece const& piece,
                            std::string const& way) {
    end.ways +=
        fmt::format("  {} part {} ({}, stream {}): {} element{}, {} B: {}\n", preposition,
                    piece.peer.device, layout.names[piece.peer.device], piece.peer.number,
                    piece.count, piece.count == 1 ? "" : "s", piece.count * parts.element, way);
  };

  ExchangeLists lists(parts.table);
  auto* const step = reinterpret_cast<u32*>(lists.add(std::vector<u64>{0}));
  std::vector<StreamPiece> pieces;
  std::vector<AwaitedCounter> credits, arrivals;
  for (auto const& piece : parts.sends) {
    auto call = call_to(StreamCall::put_notify, piece.peer, parts.tag_of(id_.device));
    call.offset = piece.there * parts.element, call.count = piece.count * parts.element;
    auto found = destinations.of("make an exchange", call);
    auto& here = pieces.emplace_back();
    here.begin = piece.first, here.end = piece.first + piece.count;
    here.source = piece.source;
    char* const packed = parts.outgoing + piece.first * parts.element;
    if (found.far) {
      here.target = packed;
      found.put.source = packed, found.put.bytes = call.count;
      found.put.step = step, found.put.half = parts.half;
      end.far_puts.push_back(std::move(found));
    } else {
      here.target = static_cast<char*>(found.put.target);
      here.half = parts.half, here.counter = found.put.counter;
    }
    if (!piece.both)
      credits.push_back(
          awaited(piece.peer, parts.credit_of(piece.peer.device), StreamNote::credit));
    note_way("to", piece,
             here.counter ? "stored there from their places, and its counter is raised"
             : on_host    ? "packed; then the stream's thread asks the other process"
                          : "packed; then a thread of the host carries them there");
  }
  std::vector<u32*> raised;
  for (auto const& piece : parts.receives) {
    arrivals.push_back(awaited(piece.peer, parts.tag_of(piece.peer.device), StreamNote::arrival));
    note_way("from", piece,
             piece.both ? "its next step says that there is room again"
                        : "it is told that there is room again");
    if (piece.both) continue;
    auto found = destinations.of(
        "make an exchange", call_to(StreamCall::notify, piece.peer, parts.credit_of(id_.device)));
    if (found.far) end.far_credits.push_back(std::move(found));
    else raised.push_back(found.put.counter);
  }

  auto& gather = end.gather;
  gather.element = parts.element;
  gather.count = parts.sent_count;
  if (!parts.sent.empty()) gather.places = lists.add(parts.sent);
  gather.pieces = lists.list(pieces);
  gather.credits = lists.list(credits);
  gather.step = step;
  auto& scatter = end.scatter;
  scatter.arrivals = parts.own, scatter.half = parts.half;
  scatter.element = parts.element, scatter.number = parts.number;
  scatter.count = parts.received_count, scatter.first = parts.first_received;
  if (!parts.targets.empty()) {
    scatter.places = lists.add(parts.targets);
    scatter.begins = lists.add(parts.begins);
    scatter.numbers = lists.add(parts.numbers);
  }
  scatter.awaited = lists.list(arrivals);
  scatter.credits = lists.list(raised);
  scatter.step = step;
  lists.write(*device_);
  // Two steps need no credit: each counter begins with two.
  u32 const two_more = ~u32{1};
  for (auto const& credit : credits)
    device_->write(credit.consumed, &two_more, Bytes{sizeof two_more});
  // From now on a failure of the stream spoils it: the counters then forget what has come, and the
  // two credits (begin_anew).
  std::scoped_lock const lock(mutex_);
  exchange_windows_.insert(end.window.number);
  windows_.try_emplace(end.window.number, end.name);
  return end;
}

std::string EndpointState::explain(ExchangeEnd const& end) {
  auto const use = begin("StreamExchange::explain");
  auto gather = end.gather;
  auto scatter = end.scatter;
  gather.unit = unit_of(gather.element, nullptr), scatter.unit = unit_of(scatter.element, nullptr);
  auto const said_of = [&](StreamExchangeWay const& way, char const* what, bool waits) {
    if (way.blocks == 0) return fmt::format("the stream's thread {}", what);
    return fmt::format("{}a kernel of {} block{} {}",
                       waits && !way.fused ? "a kernel of one warp waits, then " : "", way.blocks,
                       way.blocks == 1 ? "" : "s", what);
  };
  return fmt::format(
      "{}: {}; {}\n{}", subject(),
      said_of(stream_->way_of(gather), "gathers", gather.credits.count != 0),
      said_of(stream_->way_of(scatter), "waits and scatters", scatter.awaited.count != 0),
      end.ways);
}

// -- checks

void EndpointState::check_elements(char const* operation, ExchangeEnd const& end,
                                   Needed const& needed, u64 count) {
  if (count < end.room)
    refuse(operation,
           fmt::format("{} has {} elements; the plan's part has {}", needed.what, count, end.room),
           "give the part's own elements and its halo (PartPlan::size)");
  if (needed.bytes == 0) return;
  if (!needed.memory)
    refuse(operation, fmt::format("{} is at a null pointer", needed.what),
           "give a span that points to memory");
  if (reinterpret_cast<u64>(needed.memory) % end.alignment != 0)
    refuse(operation, fmt::format("{} is at {}", needed.what, needed.memory),
           fmt::format("align it to {} bytes", end.alignment));
  check_memory(operation, needed);
}

void EndpointState::check_source(ExchangeEnd& end, void const* source, u64 count) {
  if (source && source == end.known_source && count >= end.room) return;
  check_elements(start_name, end, {source, end.room * end.gather.element, "the source", false},
                 count);
  end.known_source = source;
}

void EndpointState::check_target(ExchangeEnd& end, void* target, u64 count) {
  if (target && target == end.known_target && count >= end.room) return;
  check_elements(finish_name, end, {target, end.room * end.gather.element, "the target", true},
                 count);
  end.known_target = target;
}

void EndpointState::check_exchange(WorldState& world, char const* operation,
                                   ExchangeEnd const& end) {
  {
    auto const lock = world.queue().now();
    world.windows().record_of(end.window, operation);  // it is still there
  }
  refuse_torn(world, operation, end.name,
              {end.window.number, "exchange", "took part in",
               "a step may be half done, and what had come is forgotten"});
}

void EndpointState::check_start(WorldState& world, ExchangeEnd const& end) {
  check_exchange(world, start_name, end);
  if (end.started)
    throw Error(
        Kind::misuse, said(start_name),
        "start() of this exchange was called before, without finish() behind it",
        "call finish() first; for several exchanges in flight make several StreamExchanges");
}

void EndpointState::check_step(ExchangeEnd& end, ExchangeMemory const& memory) {
  auto const use = begin(start_name);
  check_start(use.world(), end);
  check_source(end, memory.source, memory.source_count);
  check_target(end, memory.target, memory.target_count);
}

// A step may be half queued then.
void EndpointState::tear_if_thrown(ExchangeEnd const& end, std::function<void()> const& work) {
  try {
    work();
  } catch (...) {
    streams_->tear(id_, {end.window.number});
    throw;
  }
}

// -- on the stream

void EndpointState::start(ExchangeEnd& end, void const* source, u64 count,
                          std::source_location where) {
  HostCall observed(HostCallKind::queue, start_name, where);
  observed.about([this] { return subject(); });
  auto const use = begin(start_name);
  auto& world = use.world();
  check_start(world, end);
  check_source(end, source, count);
  world.queue().let_wait_for_runs(*stream_);
  auto gather = end.gather;
  gather.source = source, gather.unit = unit_of(gather.element, source);
  StreamTimes::Around const around(times_.get(), *stream_, "start", "send",
                                   gather.count * gather.element);
  if (gather.credits.count != 0) begin_wait(world);
  tear_if_thrown(end, [&] {
    if (gather.count != 0) stream_->gather(shared_, gather);
    for (auto const& put : end.far_puts) put_far(start_name, put);
  });
  end.started = true;
}

void EndpointState::finish(ExchangeEnd& end, void* target, u64 count, StreamCombine combine,
                           std::source_location where) {
  HostCall observed(HostCallKind::queue, finish_name, where);
  observed.about([this] { return subject(); });
  auto const use = begin(finish_name);
  auto& world = use.world();
  check_exchange(world, finish_name, end);
  if (!end.started)
    throw Error(Kind::misuse, said(finish_name), "there was no start() before",
                "call start(), and finish() behind it, on each device");
  check_target(end, target, count);
  auto scatter = end.scatter;
  scatter.target = target, scatter.unit = unit_of(scatter.element, target);
  scatter.combine = combine;
  StreamTimes::Around const around(times_.get(), *stream_, "finish", "wait",
                                   end.scatter.count * scatter.element);
  begin_wait(world);
  tear_if_thrown(end, [&] {
    stream_->scatter(shared_, scatter);
    for (auto const& credit : end.far_credits) put_far(finish_name, credit);
  });
  end.started = false;
}

}  // namespace meshpost::detail
