#pragma once
#include <functional>
#include <string>

namespace meshpost::compat::mp {

/// Does a call's work. An exception becomes MP_FAILURE, a line on stderr and mp_last_error().
int guarded(std::function<void()> const& work) noexcept;

/// \throws Error(bad_argument) if a pointer that a call needs is null
void check_given(std::string const& operation, void const* pointer, char const* what);

/// Numbers as the handles of the C interface.
template <class Handle>
unsigned long long number_of(Handle const* handle) {
  return handle ? reinterpret_cast<unsigned long long>(*handle) : 0;
}
template <class Handle>
void give(Handle* handle, unsigned long long number) {
  *handle = reinterpret_cast<Handle>(number);
}

}  // namespace meshpost::compat::mp
