#pragma once
#include <exception>
#include <source_location>
#include <string>
#include <string_view>

namespace meshpost {

/// The kind of a failure, for programs (`Error::kind()`). The text is for people.
enum class Kind {
  bad_argument,     ///< a value outside what the operation allows
  bad_environment,  ///< a variable, a device or the machine does not permit it
  out_of_memory,    ///< memory, stacks or resident ranks are used up
  no_route,         ///< no link or chain of links joins two places
  device_failed,    ///< the device or its driver reported an error
  kernel_failed,    ///< a rank called fail(), threw, or used an operation wrongly
  deadlock,         ///< every rank waits, and no rank is left to notify
  deadline,         ///< no progress anywhere for the deadline
  peer_lost,        ///< another process of the job was killed, crashed, or is out of reach
  misuse,           ///< a call that is not allowed here: run inside run, after fork, after close
  version_mismatch  ///< a kernel or library of another ABI version
};

/// The name of a kind, as it stands in messages.
std::string_view to_string(Kind kind);

/// The one exception type: what was attempted, why it failed, what to do about it.
class Error : public std::exception {
 public:
  Error(Kind kind, std::string operation, std::string cause, std::string remedy);

  Kind kind() const noexcept { return kind_; }
  std::string const& operation() const noexcept { return operation_; }
  std::string const& cause() const noexcept { return cause_; }
  std::string const& remedy() const noexcept { return remedy_; }
  /// "operation: cause; remedy [kind]"
  char const* what() const noexcept override { return text_.c_str(); }

 private:
  Kind kind_;
  std::string operation_, cause_, remedy_, text_;
};

}  // namespace meshpost
