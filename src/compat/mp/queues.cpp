// mp.h: descriptor queues.
#include <fmt/format.h>

#include <set>

#include "compat/mp/guarded.hpp"
#include "compat/mp/operations.hpp"

using namespace meshpost;
using namespace meshpost::compat::mp;

namespace {

int add(char const* name, mp_desc_queue_t const* queue, mp_request_t const* request,
        QueuedOperation::Kind kind) {
  return guarded([&] {
    check_given(name, queue, "the queue");
    check_given(name, request, "the request");
    session(name)->add_to_queue(name, number_of(queue), {{kind, number_of(request)}});
  });
}

// A request that the stream begins and then waits for.
void add_both(Session& here, char const* name, mp_desc_queue_t const* queue, u64 request) {
  here.add_to_queue(name, number_of(queue),
                    {{QueuedOperation::post, request}, {QueuedOperation::wait, request}});
}

// All or none are posted.
void check(Engine& engine, char const* name, std::vector<QueuedOperation> const& operations) {
  std::set<u64> posted;
  for (auto const& one : operations) {
    bool const is_new = one.kind == QueuedOperation::post && posted.insert(one.request).second;
    if (is_new) engine.check_unposted(name, one.request);
    else if (one.kind == QueuedOperation::post)
      throw Error(Kind::misuse, name, "the queue has a request twice",
                  "add each prepared request once");
    else if (!posted.contains(one.request)) engine.complete(name, one.request);
  }
}

}  // namespace

int mp_desc_queue_alloc(mp_desc_queue_t* queue) {
  return guarded([&] {
    check_given("mp_desc_queue_alloc", queue, "the pointer for the queue");
    give(queue, session("mp_desc_queue_alloc")->add_queue());
  });
}
int mp_desc_queue_free(mp_desc_queue_t* queue) {
  return guarded([&] {
    check_given("mp_desc_queue_free", queue, "the queue");
    session("mp_desc_queue_free")->drop_queue(number_of(queue));
    give(queue, 0);
  });
}

int mp_desc_queue_add_send(mp_desc_queue_t* queue, mp_request_t* req) {
  return add("mp_desc_queue_add_send", queue, req, QueuedOperation::post);
}
int mp_desc_queue_add_wait_send(mp_desc_queue_t* queue, mp_request_t* req) {
  return add("mp_desc_queue_add_wait_send", queue, req, QueuedOperation::wait);
}
int mp_desc_queue_add_wait_recv(mp_desc_queue_t* queue, mp_request_t* req) {
  return add("mp_desc_queue_add_wait_recv", queue, req, QueuedOperation::wait);
}
int mp_desc_queue_add_wait_value32(mp_desc_queue_t* queue, uint32_t* ptr, uint32_t value,
                                   int flags) {
  return guarded([&] {
    char const* const name = "mp_desc_queue_add_wait_value32";
    check_given(name, queue, "the queue");
    auto const here = session(name);
    auto const awaited = awaited_word(name, ptr, value, flags);
    add_both(*here, name, queue, prepare_watch(*here, name, awaited));
  });
}
int mp_desc_queue_add_write_value32(mp_desc_queue_t* queue, uint32_t* ptr, uint32_t value) {
  return guarded([&] {
    char const* const name = "mp_desc_queue_add_write_value32";
    check_given(name, queue, "the queue");
    auto const here = session(name);
    awaited_word(name, ptr, value, MP_WAIT_EQ);  // its checks
    add_both(*here, name, queue,
             here->engine().prepare(name, {.kind = Task::store, .stored = ptr, .value = value}));
  });
}

int mp_desc_queue_post_on_stream(cudaStream_t stream, mp_desc_queue_t* queue, int flags) {
  return guarded([&] {
    char const* const name = "mp_desc_queue_post_on_stream";
    check_given(name, queue, "the queue");
    if (flags != 0)
      throw Error(Kind::bad_argument, name, fmt::format("the flags are {}", flags), "pass 0");
    auto const here = session(name);
    auto& on = here->stream(name, stream);
    auto const operations = here->queued(name, number_of(queue));
    check(here->engine(), name, operations);
    here->clear_queue(name, number_of(queue));
    std::scoped_lock const lock(on.mutex());
    for (auto const& one : operations) {
      if (one.kind == QueuedOperation::post) here->engine().post(name, one.request, on.stream());
      else on.wait(here->engine(), name, one.request);
    }
  });
}
