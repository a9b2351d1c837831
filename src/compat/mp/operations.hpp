#pragma once
#include <sys/uio.h>

#include <string>

#include "compat/mp/session.hpp"
#define MESHPOST_MP_WITHOUT_MPI  // NOLINT: this part of the library has none
#include "meshpost/compat/mp.h"

// Steps that the functions of the C interface share.

namespace meshpost::compat::mp {

/// Arguments of a message, put or get.
struct Call {
  std::string name;  ///< of the function
  Task::Kind kind;
  int peer;
  mp_reg_t const* reg;
};

/// A new request for one block, or for several. \throws Error(bad_argument, misuse)
u64 prepare(Session& session, Call const& call, void* memory, int bytes);
u64 prepare(Session& session, Call const& call, iovec const* blocks, int count);

/// A put or get. \throws Error(bad_argument, misuse)
struct Place {
  mp_window_t const* window;
  size_t displacement;
  int flags;
};
u64 prepare(Session& session, Call const& call, void* memory, int bytes, Place const& place);

/// A wait for a word. \throws Error(bad_argument)
AwaitedWord awaited_word(std::string const& operation, u32 const* word, u32 value, int flags);
/// A new request that is complete when the word is as awaited.
u64 prepare_watch(Session& session, std::string const& operation, AwaitedWord const& awaited);

/// Posts requests on a stream, one after the other; `waits`: the stream then waits for each.
int post_on_stream(char const* name, u32 count, mp_request_t const* requests, cudaStream_t stream,
                   bool waits);

}  // namespace meshpost::compat::mp
