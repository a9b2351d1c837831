#include "compat/mp/operations.hpp"

#include <fmt/format.h>

#include "compat/mp/guarded.hpp"
#include "meshpost/device/block.hpp"

namespace meshpost::compat::mp {
namespace {

u64 checked_size(std::string const& operation, int bytes) {
  if (bytes >= 0) return static_cast<u64>(bytes);
  throw Error(Kind::bad_argument, operation, fmt::format("{} bytes were named", bytes),
              "give 0 or more");
}

void add_block(Session& session, Call const& call, Task& operation, void* memory, u64 bytes) {
  if (bytes == 0) return;
  check_given(call.name, memory, "the memory");
  session.check_registered(call.name, number_of(call.reg), memory, bytes);
  operation.buffer.add(memory, bytes);
}

Task operation_of(Session& session, Call const& call) {
  check_given(call.name, call.reg, "the registration");
  return {.kind = call.kind, .peer = session.engine().checked_peer(call.name, call.peer)};
}

}  // namespace

u64 prepare(Session& session, Call const& call, void* memory, int bytes) {
  auto operation = operation_of(session, call);
  add_block(session, call, operation, memory, checked_size(call.name, bytes));
  return session.engine().prepare(call.name, std::move(operation));
}

u64 prepare(Session& session, Call const& call, iovec const* blocks, int count) {
  auto operation = operation_of(session, call);
  checked_size(call.name, count);
  if (count != 0) check_given(call.name, blocks, "the list of blocks");
  for (int i = 0; i < count; ++i)
    add_block(session, call, operation, blocks[i].iov_base, blocks[i].iov_len);
  return session.engine().prepare(call.name, std::move(operation));
}

u64 prepare(Session& session, Call const& call, void* memory, int bytes, Place const& place) {
  check_given(call.name, place.window, "the window");
  constexpr int known = MP_PUT_INLINE | MP_PUT_NOWAIT;
  if ((place.flags & ~known) != 0)
    throw Error(Kind::bad_argument, call.name, fmt::format("the flags are {:#x}", place.flags),
                "use MP_PUT_INLINE, MP_PUT_NOWAIT, both or 0");
  auto operation = operation_of(session, call);
  u64 const size = checked_size(call.name, bytes);
  add_block(session, call, operation, memory, size);
  operation.window = session.number_of_window(call.name, number_of(place.window));
  operation.displacement = place.displacement;
  operation.awaitable = (place.flags & MP_PUT_NOWAIT) == 0;
  session.engine().check_range(call.name, operation.window, operation.peer, place.displacement,
                               size);
  if ((place.flags & MP_PUT_INLINE) != 0) {
    operation.inlined.resize(size);
    operation.buffer.read(0, operation.inlined.data(), size);
    operation.buffer = {};
  }
  return session.engine().prepare(call.name, std::move(operation));
}

AwaitedWord awaited_word(std::string const& operation, u32 const* word, u32 value, int flags) {
  check_given(operation, word, "the word");
  if (reinterpret_cast<u64>(word) % sizeof(u32) != 0)
    throw Error(Kind::bad_argument, operation, fmt::format("the word is at {}", fmt::ptr(word)),
                "align it to 4 bytes");
  if (gpu_of(word))
    throw Error(Kind::bad_argument, operation,
                fmt::format("the word at {} is in a GPU's memory", fmt::ptr(word)),
                "use a word of the host's memory");
  switch (flags) {
    case MP_WAIT_GEQ: return {word, value, WordTest::greater_equal};
    case MP_WAIT_EQ: return {word, value, WordTest::equal};
    case MP_WAIT_AND: return {word, value, WordTest::any_bit};
    default: break;
  }
  throw Error(Kind::bad_argument, operation, fmt::format("the flags are {}", flags),
              "use MP_WAIT_GEQ, MP_WAIT_EQ or MP_WAIT_AND");
}

u64 prepare_watch(Session& session, std::string const& operation, AwaitedWord const& awaited) {
  return session.engine().prepare(operation, {.kind = Task::watch, .awaited = awaited});
}

int post_on_stream(char const* name, u32 count, mp_request_t const* requests, cudaStream_t stream,
                   bool waits) {
  return guarded([&] {
    if (count != 0) check_given(name, requests, "the list of requests");
    auto const here = session(name);
    auto& on = here->stream(name, stream);
    std::scoped_lock const lock(on.mutex());
    // All or none.
    for (u32 i = 0; i < count; ++i) here->engine().check_unposted(name, number_of(&requests[i]));
    for (u32 i = 0; i < count; ++i) here->engine().post(name, number_of(&requests[i]), on.stream());
    for (u32 i = 0; waits && i < count; ++i) on.wait(here->engine(), name, number_of(&requests[i]));
  });
}

}  // namespace meshpost::compat::mp
