// mp.h: windows, and waits for words.
#include "compat/mp/guarded.hpp"
#include "compat/mp/operations.hpp"

using namespace meshpost;
using namespace meshpost::compat::mp;

namespace {

struct Source {
  void* memory;
  int count;
};

int put_or_get(Call const& call, Source const& bytes, Place const& place, mp_request_t* request,
               bool now) {
  return guarded([&] {
    check_given(call.name, request, "the pointer for the request");
    auto const here = session(call.name);
    u64 const made = prepare(*here, call, bytes.memory, bytes.count, place);
    if (now) here->engine().post(call.name, made);
    give(request, made);
  });
}

}  // namespace

int mp_window_create(void* addr, size_t size, mp_window_t* window) {
  return guarded([&] {
    check_given("mp_window_create", window, "the pointer for the window");
    if (size != 0) check_given("mp_window_create", addr, "the memory");
    give(window, session("mp_window_create")->create_window(addr, size));
  });
}

int mp_window_destroy(mp_window_t* window) {
  return guarded([&] {
    check_given("mp_window_destroy", window, "the window");
    session("mp_window_destroy")->destroy_window(number_of(window));
  });
}

int mp_iput(void* src, int size, mp_reg_t* src_reg, int peer, size_t displ, mp_window_t* window,
            mp_request_t* req, int flags) {
  return put_or_get({"mp_iput", Task::put, peer, src_reg}, {src, size}, {window, displ, flags}, req,
                    true);
}
int mp_iget(void* dst, int size, mp_reg_t* dst_reg, int peer, size_t displ, mp_window_t* window,
            mp_request_t* req) {
  return put_or_get({"mp_iget", Task::get, peer, dst_reg}, {dst, size}, {window, displ, 0}, req,
                    true);
}
int mp_put_prepare(void* src, int size, mp_reg_t* src_reg, int peer, size_t displ,
                   mp_window_t* window, mp_request_t* req, int flags) {
  return put_or_get({"mp_put_prepare", Task::put, peer, src_reg}, {src, size},
                    {window, displ, flags}, req, false);
}
int mp_iput_on_stream(void* src, int size, mp_reg_t* src_reg, int peer, size_t displ,
                      mp_window_t* window, mp_request_t* req, int flags, cudaStream_t stream) {
  int const status = put_or_get({"mp_iput_on_stream", Task::put, peer, src_reg}, {src, size},
                                {window, displ, flags}, req, false);
  return status != MP_SUCCESS ? status : post_on_stream("mp_iput_on_stream", 1, req, stream, false);
}
int mp_iput_post_on_stream(mp_request_t* req, cudaStream_t stream) {
  return post_on_stream("mp_iput_post_on_stream", 1, req, stream, false);
}
int mp_iput_post_all_on_stream(uint32_t count, mp_request_t* reqs, cudaStream_t stream) {
  return post_on_stream("mp_iput_post_all_on_stream", count, reqs, stream, false);
}

int mp_wait32(uint32_t* ptr, uint32_t value, int flags) {
  return guarded([&] {
    auto const here = session("mp_wait32");
    here->engine().wait("mp_wait32", awaited_word("mp_wait32", ptr, value, flags));
  });
}

int mp_wait32_on_stream(uint32_t* ptr, uint32_t value, int flags, cudaStream_t stream) {
  return guarded([&] {
    char const* const name = "mp_wait32_on_stream";
    auto const here = session(name);
    auto& on = here->stream(name, stream);
    std::scoped_lock const lock(on.mutex());
    u64 const watch = prepare_watch(*here, name, awaited_word(name, ptr, value, flags));
    here->engine().post(name, watch, on.stream());
    on.wait(here->engine(), name, watch);
  });
}
