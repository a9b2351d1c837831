#include "compat/mp/guarded.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "meshpost/base/error.hpp"
#define MESHPOST_MP_WITHOUT_MPI  // NOLINT: this part of the library has none
#include "meshpost/compat/mp.h"

namespace meshpost::compat::mp {
namespace {

thread_local std::string last_error;

int tell(char const* text) noexcept {
  std::fprintf(stderr, "%s\n", text);
  try {
    last_error = text;
  } catch (...) {
    last_error.clear();  // no memory for the text: the failure is still reported
  }
  return MP_FAILURE;
}

}  // namespace

int guarded(std::function<void()> const& work) noexcept {
  try {
    work();
    return MP_SUCCESS;
  } catch (std::exception const& error) {
    return tell(error.what());
  } catch (...) {
    return tell("something that is not a std::exception was thrown");
  }
}

void check_given(std::string const& operation, void const* pointer, char const* what) {
  if (pointer) return;
  throw Error(Kind::bad_argument, operation, fmt::format("{} is null", what), "pass one");
}

}  // namespace meshpost::compat::mp

char const* mp_last_error(void) { return meshpost::compat::mp::last_error.c_str(); }
