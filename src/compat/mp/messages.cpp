// mp.h: registration, messages, and waits for requests.
#include <fmt/format.h>

#include "compat/mp/guarded.hpp"
#include "compat/mp/operations.hpp"

using namespace meshpost;
using namespace meshpost::compat::mp;

namespace {

// `Memory...`: one block and its bytes, or a list of blocks and their number.
template <class... Memory>
int post_now(Call const& call, mp_request_t* request, Memory... memory) {
  return guarded([&] {
    check_given(call.name, request, "the pointer for the request");
    auto const here = session(call.name);
    u64 const made = prepare(*here, call, memory...);
    here->engine().post(call.name, made);
    give(request, made);
  });
}

template <class... Memory>
int prepare_only(Call const& call, mp_request_t* request, Memory... memory) {
  return guarded([&] {
    check_given(call.name, request, "the pointer for the request");
    give(request, prepare(*session(call.name), call, memory...));
  });
}

template <class... Memory>
int send_on(cudaStream_t stream, bool waits, Call const& call, mp_request_t* request,
            Memory... memory) {
  if (int const status = prepare_only(call, request, memory...)) return status;
  return post_on_stream(call.name.c_str(), 1, request, stream, waits);
}

}  // namespace

int mp_query_param(mp_param_t param, int* value) {
  return guarded([&] {
    check_given("mp_query_param", value, "the pointer for the value");
    if (param != MP_PARAM_VERSION)
      throw Error(Kind::bad_argument, "mp_query_param",
                  fmt::format("there is no parameter {}", static_cast<int>(param)),
                  "ask for MP_PARAM_VERSION");
    *value = MP_API_VERSION;
  });
}

int mp_init_job(int const* peers, int count, int /*flags*/, int gpu, int* process, int* processes) {
  return guarded([&] {
    if (count < 0)
      throw Error(Kind::bad_argument, "mp_init_job", fmt::format("{} peers were named", count),
                  "give 0 or more");
    if (count > 0) check_given("mp_init_job", peers, "the list of peers");
    begin_session({}, std::vector<int>(peers, peers + std::max(count, 0)), gpu);
    auto const here = session("mp_init_job");
    if (process) *process = static_cast<int>(here->process());
    if (processes) *processes = static_cast<int>(here->processes());
  });
}

void mp_finalize(void) { guarded(end_session); }

int mp_register(void* addr, size_t length, mp_reg_t* reg) {
  return guarded([&] {
    check_given("mp_register", reg, "the pointer for the registration");
    if (length != 0) check_given("mp_register", addr, "the memory");
    if (length > ~reinterpret_cast<std::uintptr_t>(addr))
      throw Error(
          Kind::bad_argument, "mp_register",
          fmt::format("{} bytes at {} were named, which no address space has", length, addr),
          "give the size of the memory in bytes");
    give(reg, session("mp_register")->add_registration(addr, length));
  });
}

int mp_deregister(mp_reg_t* reg) {
  return guarded([&] {
    check_given("mp_deregister", reg, "the registration");
    session("mp_deregister")->drop_registration(number_of(reg));
  });
}

int mp_irecv(void* buf, int size, int peer, mp_reg_t* reg, mp_request_t* req) {
  return post_now({"mp_irecv", Task::receive, peer, reg}, req, buf, size);
}
int mp_isend(void* buf, int size, int peer, mp_reg_t* reg, mp_request_t* req) {
  return post_now({"mp_isend", Task::send, peer, reg}, req, buf, size);
}
int mp_irecvv(iovec* blocks, int count, int peer, mp_reg_t* reg, mp_request_t* req) {
  return post_now({"mp_irecvv", Task::receive, peer, reg}, req, blocks, count);
}
int mp_isendv(iovec* blocks, int count, int peer, mp_reg_t* reg, mp_request_t* req) {
  return post_now({"mp_isendv", Task::send, peer, reg}, req, blocks, count);
}

int mp_send_on_stream(void* buf, int size, int peer, mp_reg_t* reg, mp_request_t* req,
                      cudaStream_t stream) {
  return send_on(stream, true, {"mp_send_on_stream", Task::send, peer, reg}, req, buf, size);
}
int mp_isend_on_stream(void* buf, int size, int peer, mp_reg_t* reg, mp_request_t* req,
                       cudaStream_t stream) {
  return send_on(stream, false, {"mp_isend_on_stream", Task::send, peer, reg}, req, buf, size);
}
int mp_isendv_on_stream(iovec* blocks, int count, int peer, mp_reg_t* reg, mp_request_t* req,
                        cudaStream_t stream) {
  return send_on(stream, false, {"mp_isendv_on_stream", Task::send, peer, reg}, req, blocks, count);
}

int mp_send_prepare(void* buf, int size, int peer, mp_reg_t* reg, mp_request_t* req) {
  return prepare_only({"mp_send_prepare", Task::send, peer, reg}, req, buf, size);
}
int mp_sendv_prepare(iovec* blocks, int count, int peer, mp_reg_t* reg, mp_request_t* req) {
  return prepare_only({"mp_sendv_prepare", Task::send, peer, reg}, req, blocks, count);
}
int mp_send_post_on_stream(mp_request_t* req, cudaStream_t stream) {
  return post_on_stream("mp_send_post_on_stream", 1, req, stream, true);
}
int mp_isend_post_on_stream(mp_request_t* req, cudaStream_t stream) {
  return post_on_stream("mp_isend_post_on_stream", 1, req, stream, false);
}
int mp_send_post_all_on_stream(uint32_t count, mp_request_t* reqs, cudaStream_t stream) {
  return post_on_stream("mp_send_post_all_on_stream", count, reqs, stream, true);
}
int mp_isend_post_all_on_stream(uint32_t count, mp_request_t* reqs, cudaStream_t stream) {
  return post_on_stream("mp_isend_post_all_on_stream", count, reqs, stream, false);
}

int mp_wait(mp_request_t* req) {
  return guarded([&] {
    check_given("mp_wait", req, "the request");
    session("mp_wait")->engine().wait("mp_wait", number_of(req));
  });
}

int mp_wait_all(uint32_t count, mp_request_t* reqs) {
  return guarded([&] {
    if (count != 0) check_given("mp_wait_all", reqs, "the list of requests");
    auto const here = session("mp_wait_all");
    for (uint32_t i = 0; i < count; ++i) here->engine().wait("mp_wait_all", number_of(&reqs[i]));
  });
}

int mp_progress_all(uint32_t /*count*/, mp_request_t* /*reqs*/) {
  return guarded([&] {
    auto const here = session("mp_progress_all");
    here->engine().progress();
    here->engine().check("mp_progress_all");
  });
}

int mp_wait_on_stream(mp_request_t* req, cudaStream_t stream) {
  return mp_wait_all_on_stream(1, req, stream);
}

int mp_wait_all_on_stream(uint32_t count, mp_request_t* reqs, cudaStream_t stream) {
  return guarded([&] {
    char const* const name = "mp_wait_on_stream";
    if (count != 0) check_given(name, reqs, "the request");
    auto const here = session(name);
    auto& on = here->stream(name, stream);
    std::scoped_lock const lock(on.mutex());
    for (uint32_t i = 0; i < count; ++i) on.wait(here->engine(), name, number_of(&reqs[i]));
  });
}
