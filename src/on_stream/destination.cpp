#include "on_stream/destination.hpp"

#include <fmt/format.h>

#include <map>

namespace meshpost::detail {

std::optional<Questions::Begun> FarTarget::write(u64 offset, void const* source, u64 bytes) const {
  GlobalAddress const at{address_.device, address_.offset + offset};
  auto const& layout = world_->layout();
  if (!layout.owns(at.device)) return far_memory().begin_write(at, source, bytes);
  layout.own(at.device).write(world_->addresses().memory(at, bytes), source, Bytes{bytes});
  return std::nullopt;
}

void FarTarget::write_and_notify(u64 offset, void const* source, u64 bytes) const {
  if (bytes == 0 || !world_->layout().owns(address_.device))
    return notify({{address_.device, address_.offset + offset}, source, bytes});
  write(offset, source, bytes);  // by this process
  notify({});
}
void FarTarget::notify() const { notify({}); }

// An endpoint of this process is notified about bytes that another process has: these are written
// first.
void FarTarget::notify(BytesBefore const& before) const {
  auto const& layout = world_->layout();
  auto const& far = far_memory();
  auto const write_first = [&] {
    if (before.bytes != 0) far.transfer(before.address, nullptr, before.source, before.bytes);
  };
  if (std::holds_alternative<RankId>(notified_)) {
    if (!layout.owns(device_)) return far.raise(device_, signal_, before);
    write_first();
    auto* const word = world_->heap().at(device_, signal_.at());
    world_->endpoint().raise(device_ - layout.first_device,
                             signal_.moved_to(reinterpret_cast<u64>(word)),
                             world_->agreement().valid());
  } else if (auto const* const stream = std::get_if<StreamId>(&notified_)) {
    if (before.bytes != 0 && !layout.owns(stream->device))
      return far.raise(window_, *stream, tag_, before);
    write_first();
    world_->host().raise_endpoint(window_, *stream, tag_);
  } else if (auto const* const host = std::get_if<HostId>(&notified_)) {
    if (!layout.owns(host->device)) return far.raise(window_, *host, tag_, before);
    write_first();
    world_->endpoints().raise(window_.number, tag_);
  } else {
    write_first();
  }
}

bool FarTarget::operator==(FarTarget const& other) const {
  return window_.number == other.window_.number && address_.device == other.address_.device &&
         address_.offset == other.address_.offset && tag_.value == other.tag_.value &&
         device_ == other.device_ && signal_.counter == other.signal_.counter &&
         notified_ == other.notified_;
}

std::string Destinations::Told::text() const { return fmt::format("{}, {}", operation, window); }

// The device whose memory and counters are meant.
u32 Destinations::device_of(Told const& told, StreamCall const& send) const {
  auto const& layout = world_.layout();
  if (send.puts()) {
    if (send.rank >= layout.ranks()) world_.host().check_rank(told.text(), send.rank);
    return layout.device_of(send.rank);
  }
  if (auto const* const rank = std::get_if<RankId>(&send.notified)) {
    if (*rank >= layout.ranks()) world_.host().check_rank(told.text(), *rank);
    return layout.device_of(*rank);
  }
  if (auto const* const stream = std::get_if<StreamId>(&send.notified)) return stream->device;
  return std::get<HostId>(send.notified).device;
}

ResolvedCall Destinations::of(std::string const& operation, StreamCall const& send) const {
  auto const lock = world_.queue().now();
  auto const& record = world_.windows().record_of(send.window, operation);
  Told const told{operation, record.name};
  auto const& layout = world_.layout();
  ResolvedCall found;
  u32 const device = device_of(told, send);
  // After a failure the counter's owner may clear its memory until the next run begins. Hosts keep
  // counts meanwhile.
  bool const kept = std::holds_alternative<RankId>(send.notified) && !world_.agreement().valid();
  if (device < layout.device_count() && (kept || layout.far(own(), device)))
    found.far.emplace(world_, record.info);
  if (send.puts()) place(told, record, send, found);
  count(told, record, send, found);
  found.window = record.name;
  found.before_runs = !std::holds_alternative<StreamId>(send.notified) &&
                      !std::holds_alternative<HostId>(send.notified);
  found.touches_ranks = send.puts() || std::holds_alternative<RankId>(send.notified);
  return found;
}

void Destinations::place(Told const& told, WindowRecord const& record, StreamCall const& put,
                         ResolvedCall& found) const {
  if (put.offset == RemoteSpan<char>::beyond)
    throw Error(Kind::bad_argument, told.text(), "the target is a subspan that leaves its span",
                "check its offset and size");
  u64 const limit = record.parts.empty() ? record.info.count : record.parts[put.rank].count;
  if (put.offset > limit || put.count > limit - put.offset)
    world_.host().check_range(told.text(), record, put.rank, put.offset, put.count);
  if (put.count > put.limit)
    throw Error(Kind::bad_argument, told.text(),
                fmt::format("{} elements were given where {} fit", put.count, put.limit),
                "give spans of fitting sizes");
  u64 const skipped = put.offset * put.element_bytes;
  if (found.far) {
    found.far->address_ = world_.windows().address_of(record, put.rank);
    found.far->address_.offset += skipped;
  } else {
    found.put.target = world_.windows().part_of(own(), record, put.rank) + skipped;
  }
}

void Destinations::count(Told const& told, WindowRecord const& record, StreamCall const& send,
                         ResolvedCall& found) const {
  auto const& layout = world_.layout();
  auto const& info = record.info;
  if (std::holds_alternative<std::monostate>(send.notified)) return;
  if (found.far) found.far->notified_ = send.notified, found.far->tag_ = send.tag;
  auto const near_counter = [&](u32 device, u64 offset) {
    if (!found.far)
      found.put.counter = reinterpret_cast<u32*>(world_.heap().at(device, offset)) + send.tag.value;
  };
  if (auto const* const stream = std::get_if<StreamId>(&send.notified)) {
    if (stream->device >= layout.device_count() || stream->number >= StreamId::most ||
        send.tag.value >= info.tags)
      world_.host().check_stream(told.text(), info, *stream, send.tag);
    if (send.puts() && layout.device_of(send.rank) != stream->device)
      throw Error(
          Kind::bad_argument, told.text(),
          fmt::format("the target is on {}, and the stream that is notified on {}",
                      layout.names[layout.device_of(send.rank)], layout.names[stream->device]),
          "notify a stream of the target's device");
    return near_counter(stream->device, info.stream_counters(stream->number, WindowInfo::raised));
  }
  if (send.tag.value >= info.tags) world_.host().check_tag(told.text(), info, send.tag);
  if (auto const* const host = std::get_if<HostId>(&send.notified)) {
    if (host->device >= layout.device_count())
      throw Error(Kind::bad_argument, told.text(),
                  fmt::format("HostId::device is {}", static_cast<i32>(host->device)),
                  "use World::host()");
    return near_counter(host->device, info.host_counters);
  }
  auto const rank = std::get<RankId>(send.notified);
  u32 const device = layout.device_of(rank), local = rank % layout.ranks_per_device;
  u64 const distance = u64{info.counter_part} * WindowInfo::raised_by;
  u64 const counters = info.counters + u64{local} * info.counter_pitch();
  u32 const origin = WindowInfo::raiser(layout.ranks() + world_.group().count() + word_of(stream_));
  if (found.far) {
    found.far->device_ = device;
    found.far->signal_ = via::Signal::of(counters + send.tag.value * sizeof(u32), distance, origin);
    return;
  }
  near_counter(device, counters);
  found.put.origin_word = found.put.counter + distance / sizeof(u32);
  found.put.origin = origin;
}

ResolvedCall Destinations::awaited(std::string const& operation, StreamCall const& call) const {
  auto const lock = world_.queue().now();
  auto const& record = world_.windows().record_of(call.window, operation);
  Told const told{operation, record.name};
  auto const& info = record.info;
  auto const refuse = [&](std::string cause, std::string remedy) {
    throw Error(Kind::bad_argument, told.text(), std::move(cause), std::move(remedy));
  };
  std::map<u32, u64> counts;  // two of one tag would consume twice
  for (auto const& one : call.awaited) {
    if (one.tag.value >= info.tags) world_.host().check_tag(told.text(), info, one.tag);
    counts[one.tag.value] += one.count;
  }
  if (counts.size() > AwaitedCounter::most)
    refuse(fmt::format("{} tags were named; it may be {}", counts.size(), AwaitedCounter::most),
           "wait for some of them first");
  ResolvedCall found;
  found.window = record.name;
  found.awaited.reserve(counts.size());
  for (auto const& [tag, count] : counts) {
    world_.host().check_count(told.text(), count);
    found.awaited.push_back(counter(record, {Tag{tag}, static_cast<u32>(count)}));
  }
  return found;
}

AwaitedCounter Destinations::counter(WindowRecord const& record, Counts const& counts) const {
  auto const& info = record.info;
  auto const word_in = [&](WindowInfo::StreamArray array) {
    return reinterpret_cast<u32*>(
               world_.heap().at(stream_.device, info.stream_counters(stream_.number, array))) +
           counts.tag.value;
  };
  return {.raised = word_in(WindowInfo::raised),
          .raised_by_host = world_.endpoints().of_stream(*record.host, stream_) + counts.tag.value,
          .consumed = word_in(WindowInfo::consumed),
          .count = counts.count,
          .window = info.number,
          .tag = counts.tag.value};
}

}  // namespace meshpost::detail
