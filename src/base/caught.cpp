#include "base/caught.hpp"

#include <exception>
#include <new>
#include <system_error>

namespace meshpost {

Error caught(std::string const& operation) {
  try {
    throw;
  } catch (Error const& error) {
    return error;
  } catch (std::bad_alloc const&) {
    return {Kind::out_of_memory, operation, "the host's memory is used up",
            "free some, raise the limit (ulimit -v), or ask for less at once"};
  } catch (std::system_error const& error) {
    // Of the functions that the library calls, only the start of a thread throws this.
    if (error.code() == std::errc::resource_unavailable_try_again)
      return {Kind::out_of_memory, operation,
              std::string("no thread could be started: ") + error.what(),
              "raise the limit of processes (ulimit -u), or use fewer processes or threads"};
    return {Kind::bad_environment, operation, error.what(),
            "check the limits of this host (ulimit -a); if none is the cause, report it"};
  } catch (std::exception const& error) {
    return {Kind::device_failed, operation, error.what(),
            "check the limits of this host (ulimit -a); if none is the cause, report it"};
  } catch (...) {
    return {Kind::device_failed, operation, "something that is not a std::exception was thrown",
            "check what your functions throw that the library calls"};
  }
}

}  // namespace meshpost
