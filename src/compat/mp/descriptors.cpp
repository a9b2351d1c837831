// mp/device.cuh: descriptors for kernels.
#include "compat/mp/guarded.hpp"
#include "compat/mp/operations.hpp"
#include "meshpost/compat/mp/device.cuh"

namespace mp::mlx5 {
namespace {

using namespace meshpost::compat::mp;
using meshpost::u64;

isem32_t awaited_by_kernel(Session& session, uint32_t* word, uint32_t value) {
  auto const deadline =
      std::chrono::duration_cast<std::chrono::nanoseconds>(session.engine().deadline());
  return {word, value, static_cast<u64>(deadline.count())};
}

constexpr char const* name = "get_descriptors";

}  // namespace

int get_descriptors(isem32_t* descriptor, uint32_t* ptr, uint32_t value) {
  return guarded([&] {
    check_given(name, descriptor, "the pointer for the descriptor");
    awaited_word(name, ptr, value, MP_WAIT_GEQ);  // its checks
    *descriptor = awaited_by_kernel(*session(name), ptr, value);
  });
}

int get_descriptors(send_desc_t* descriptor, mp_request_t* req) {
  return guarded([&] {
    check_given(name, descriptor, "the pointer for the descriptor");
    check_given(name, req, "the request");
    auto const words = session(name)->engine().post_by_kernel(name, number_of(req));
    descriptor->begin = {words.rung, words.number, 0};
  });
}

int get_descriptors(wait_desc_t* descriptor, mp_request_t* req) {
  return guarded([&] {
    check_given(name, descriptor, "the pointer for the descriptor");
    check_given(name, req, "the request");
    auto const here = session(name);
    auto const words = here->engine().words_of(name, number_of(req));
    descriptor->done = awaited_by_kernel(*here, words.done, words.number);
    descriptor->failed = here->engine().failed();
  });
}

}  // namespace mp::mlx5
