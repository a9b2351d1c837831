#pragma once
#include <string>
#include <string_view>

#include "meshpost/base/types.hpp"

// The first message of a process, after both ends have proven that they know the secret (tls.hpp).
// Values only; sockets are elsewhere.

namespace meshpost::greeting {

struct Hello {
  u32 process = 0, processes = 0;  // these three lie here in every version
  u32 version = 0;                 ///< of the messages on connections and of shared memory
  i64 pid = 0;
  std::string host;
  std::string job;  ///< Job::identity
};

std::string pack(Hello const& mine);
/// The hello of another version has only the first three fields.
/// \throws Error(bad_argument) for garbage
Hello unpack(std::string_view bytes);

/// This build's Hello::version.
u32 version();

}  // namespace meshpost::greeting
