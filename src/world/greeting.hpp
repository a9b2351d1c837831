#pragma once
#include <string>
#include <string_view>

#include "world/secret.hpp"
#include "world/wire.hpp"

// What two processes say to each other before anything else. Values only; sockets are elsewhere.
//
//   process 0            the other
//   challenge       ->
//                   <-   hello: who it is, a challenge of its own, a proof over both
//   welcome (proof) ->                or a refusal (text)
//
// The proofs differ by direction, so neither can be sent back as an answer. From the secret and
// both challenges comes a key for each direction, for the marks of what follows (seal.hpp).

namespace meshpost::greeting {

struct Hello {
  u32 process = 0, processes = 0;  // the first three lie here in every version
  u32 version = 0;                 ///< of what crosses connections and of memory that is shared
  i64 pid = 0;
  std::string host;
  std::string job;  ///< Job::identity
  Digest challenge{};
};

/// Process 0's first words.
std::string challenge(Digest const& challenge);
/// \throws Error(bad_argument) if they are not
Digest read_challenge(std::string_view bytes);

std::string hello(Hello const& mine, Digest const& theirs, Secret const& secret);
/// \throws Error(bad_argument) for garbage; nothing where the proof is wrong
std::optional<Hello> read_hello(std::string_view bytes, Digest const& mine, Secret const& secret);

std::string welcome(Digest const& theirs, Digest const& mine, Secret const& secret);
bool read_welcome(std::string_view bytes, Digest const& mine, Digest const& theirs,
                  Secret const& secret);

/// What the frames after the greeting are marked with.
struct Keys {
  Digest out, in;
};
Keys keys_of_process_0(Digest const& mine, Digest const& theirs, Secret const& secret);
Keys keys_of_other(Digest const& mine, Digest const& theirs, Secret const& secret);

/// This build's Hello::version.
u32 version();

}  // namespace meshpost::greeting
