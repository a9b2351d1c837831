// The operations of a stream: checked, then put on the stream.
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "base/caught.hpp"
#include "base/fork.hpp"
#include "base/host_calls.hpp"
#include "device/cpu/channel.hpp"
#include "on_stream/endpoint.hpp"

namespace meshpost::detail {

char const* name_of(StreamCall::Verb verb) {
  constexpr char const* names[] = {"put", "put_notify", "notify", "wait", "send", "receive"};
  return names[verb];
}

// -- checks

void EndpointState::refuse(std::string_view operation, std::string cause,
                           std::string remedy) const {
  throw Error(Kind::bad_argument, said(operation), std::move(cause), std::move(remedy));
}

void EndpointState::check_memory(char const* operation, Needed const& needed) {
  auto const* const at = static_cast<char const*>(needed.memory);
  if (at >= heap_begin_ && at < heap_end_ && needed.bytes <= static_cast<u64>(heap_end_ - at))
    return;
  if (at >= known_begin_ && at < known_end_ && needed.bytes <= static_cast<u64>(known_end_ - at))
    return;
  auto const found = device_->locate(needed.memory);
  if (!found.usable)
    refuse(operation,
           fmt::format("{} at {} is memory that {} can't {}", needed.what, needed.memory,
                       device_->name(), needed.written ? "write" : "read"),
           "use memory of that device, or pinned memory (Device::allocate, cudaHostAlloc)");
  if (needed.bytes > found.extent)
    refuse(operation,
           fmt::format("{} bytes were named at {}, {}; its allocation ends after {}", needed.bytes,
                       needed.memory, needed.what, found.extent),
           "name memory that is there");
  if (found.extent != ~u64{0}) known_begin_ = at, known_end_ = at + found.extent;
}

void EndpointState::check_memories(StreamCall const& call) {
  auto const* const operation = name_of(call.verb);
  bool const receives = call.verb == StreamCall::receive;
  void const* const memory = receives ? call.target : call.source;
  if (call.count > ~u64{0} / call.element_bytes)
    refuse(operation,
           fmt::format("{} elements of {} bytes were named", call.count, call.element_bytes),
           "name memory that is there");
  u64 const bytes = call.count * call.element_bytes;
  if (bytes != 0 && !memory)
    refuse(operation, fmt::format("{} elements were named at a null pointer", call.count),
           "give a span that points to memory");
  if (bytes != 0)
    check_memory(operation, {memory, bytes, receives ? "the target" : "the source", receives});
  for (void const* const count :
       {static_cast<void const*>(call.units), static_cast<void const*>(call.received)}) {
    if (!count) continue;
    if (reinterpret_cast<u64>(count) % sizeof(u64) != 0)
      refuse(operation, fmt::format("the count is at {}", count), "align it to 8 bytes");
    check_memory(operation, {count, sizeof(u64), "the count", count == call.received});
  }
}

// Errors of windows and of messages do not know the stream.
Error EndpointState::with_stream(Error const& error, std::string_view operation) const {
  auto const& found = error.operation();
  if (!found.starts_with(operation) || found.starts_with(said(operation))) return error;
  return {error.kind(), said(operation) + found.substr(operation.size()), error.cause(),
          error.remedy()};
}

ResolvedCall EndpointState::resolve(WorldState& world, StreamCall const& call) {
  try {
    return resolve_unnamed(world, call);
  } catch (Error const& error) {
    throw with_stream(error, name_of(call.verb));
  }
}

ResolvedCall EndpointState::resolve_unnamed(WorldState& world, StreamCall const& call) {
  auto const* const operation = name_of(call.verb);
  Destinations const destinations(world, id_);
  if (call.verb == StreamCall::wait) return destinations.awaited(operation, call);
  bool const message = call.verb == StreamCall::send || call.verb == StreamCall::receive;
  auto found = message ? destinations.message(operation, call) : destinations.of(operation, call);
  if (call.verb == StreamCall::notify) return found;
  check_memories(call);
  u64 const bytes = call.count * call.element_bytes;
  found.put.source = call.source, found.put.bytes = bytes;
  found.put.units = call.units, found.put.unit = call.element_bytes;
  found.into = {
      .target = call.target, .bytes = bytes, .unit = call.element_bytes, .count = call.received};
  return found;
}

// -- on the stream

void EndpointState::take(StreamCall const& call) {
  HostCall observed(HostCallKind::queue, name_of(call.verb), call.where);
  observed.about([this] { return subject(); });
  auto const use = begin(name_of(call.verb));
  carry_out(use.world(), call, resolve(use.world(), call));
}

std::shared_ptr<PreparedCall> EndpointState::prepare(StreamCall const& call) {
  auto const use = begin(name_of(call.verb));
  return std::make_shared<PreparedCall>(
      PreparedCall{weak_from_this(), call, resolve(use.world(), call)});
}

void EndpointState::post(PreparedCall const& prepared, std::source_location where) {
  auto const& call = prepared.call;
  HostCall observed(HostCallKind::queue, name_of(call.verb), where);
  observed.about([this] { return subject(); });
  auto const use = begin(name_of(call.verb));
  auto& world = use.world();
  // After a run that failed, hosts keep counts of ranks: then it goes another way.
  if (std::holds_alternative<RankId>(call.notified) && !world.agreement().valid())
    return carry_out(world, call, resolve(world, call));
  {
    auto const lock = world.queue().now();
    world.windows().record_of(call.window, name_of(call.verb));  // it is still there
  }
  carry_out(world, call, prepared.resolved);
}

std::string EndpointState::explain(StreamCall const& call) {
  auto const use = begin("explain");
  return explained(use.world(), call, resolve(use.world(), call));
}

void EndpointState::carry_out(WorldState& world, StreamCall const& call,
                              ResolvedCall const& resolved) {
  if (call.verb == StreamCall::wait && resolved.awaited.empty()) return;
  use(world, call, resolved.window);
  if (resolved.touches_ranks) world.queue().let_wait_for_runs(*stream_);
  bool const waits = call.verb == StreamCall::wait || call.verb == StreamCall::receive;
  StreamTimes::Around const around(times_.get(), *stream_, name_of(call.verb),
                                   waits ? "wait" : "send", call.count * call.element_bytes);
  switch (call.verb) {
    case StreamCall::put:
    case StreamCall::put_notify:
    case StreamCall::notify:
      if (resolved.far) return put_far(name_of(call.verb), resolved);
      return stream_->put(shared_, resolved.put);
    case StreamCall::wait: begin_wait(world); return stream_->await(shared_, resolved.awaited);
    case StreamCall::send:
      begin_wait(world);
      if (resolved.far) return send_far(resolved);
      return stream_->send(shared_, resolved.channel, resolved.put, nullptr);
    case StreamCall::receive:
      begin_wait(world);
      if (resolved.far) return receive_far(resolved);
      return stream_->receive(shared_, resolved.channel, resolved.into, nullptr);
  }
}

void EndpointState::begin_wait(WorldState& world) {
  if (note().waiting != StreamNote::no) return;
  std::scoped_lock const lock(mutex_);
  failures_before_ = world.queue().failures();
}

// -- out of reach

void EndpointState::make_far_sender(FarMemory const& memory) {
  far_ = std::make_unique<FarSender>(*device_, memory, [this](std::exception_ptr const& why) {
    try {
      std::rethrow_exception(why);
    } catch (...) {
      fail(far_error("send"));
    }
  });
}

// Inside a catch clause: an error of what this stream asked of another process.
Error EndpointState::far_error(std::string_view operation) const {
  auto error = caught(said(operation));
  if (error.operation() == said(operation)) return error;
  return {error.kind(), said(operation), fmt::format("{}: {}", error.operation(), error.cause()),
          error.remedy()};
}

// By the stream's thread. False: it failed.
bool EndpointState::write_far(char const* operation, std::function<void()> const& write) {
  try {
    write();
    return true;
  } catch (...) {
    memory::store_relaxed(shared_.ended, 1);
    fail(far_error(operation));
    return false;
  }
}

StreamPost EndpointState::post_to(FarTarget const& target) {
  if (!far_) make_far_sender(target.far_memory());
  return {far_->ring(), far_->number_of(target)};
}

void EndpointState::put_far(char const* operation, ResolvedCall const& resolved) {
  auto const& put = resolved.put;
  if (stream_->on_host())
    return stream_->call([this, operation, target = *resolved.far, put] {
      if (memory::load_relaxed(shared_.ended) != 0) return;
      write_far(operation, [&] { target.write_and_notify(put.skipped(), put.source, put.size()); });
    });
  auto const post = post_to(*resolved.far);
  stream_->post(shared_, post.ring, post.operation, put, resolved.before_runs);
}

void EndpointState::send_far(ResolvedCall const& resolved) {
  auto const& to = resolved.channel;
  auto const& put = resolved.put;
  if (!stream_->on_host()) {
    auto const post = post_to(*resolved.far);
    return stream_->send(shared_, to, put, &post);
  }
  stream_->call([this, target = *resolved.far, to, put] {
    cpu::send(shared_, to, put,
              [&](u32 n, ChunkHeader const& header, char const* source, u64 bytes) {
                return write_far("send", [&] {
                  std::vector<char> slot(ChunkHeader::pitch + bytes);
                  std::memcpy(slot.data(), &header, sizeof header);
                  if (bytes != 0) std::memcpy(slot.data() + ChunkHeader::pitch, source, bytes);
                  target.write_and_notify(to.slot_at(n), slot.data(), slot.size());
                });
              });
  });
}

void EndpointState::receive_far(ResolvedCall const& resolved) {
  auto const& from = resolved.channel;
  auto const& into = resolved.into;
  if (!stream_->on_host()) {
    auto const post = post_to(*resolved.far);
    return stream_->receive(shared_, from, into, &post);
  }
  stream_->call([this, sender = *resolved.far, from, into] {
    cpu::receive(shared_, from, into,
                 [&](u32) { return write_far("receive", [&] { sender.notify(); }); });
  });
}

}  // namespace meshpost::detail
