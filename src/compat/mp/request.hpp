#pragma once
#include <string>
#include <vector>

#include "compat/mp/buffer.hpp"
#include "compat/mp/words.hpp"

namespace meshpost::compat::mp {

/// The condition on a word: mp_wait_flags.
enum class WordTest : u8 { greater_equal, equal, any_bit };

/// A word of the host's memory, and what somebody waits for there.
struct AwaitedWord {
  u32 const* word = nullptr;
  u32 value = 0;
  WordTest test = WordTest::greater_equal;

  bool holds() const;
  std::string text() const;  ///< "the word at 0x... is 3; >= 5 is awaited"
};

/// The work of a request.
struct Task {
  enum Kind : u8 { send, receive, put, get, watch, store } kind = send;
  u32 peer = 0;
  Buffer buffer{};              ///< source or target
  std::vector<char> inlined{};  ///< a source that was read already; `buffer` is then empty
  bool awaitable = true;        ///< false: nobody waits for it
  u32 window = 0;               ///< put, get
  u64 displacement = 0;         ///< likewise
  AwaitedWord awaited{};        ///< watch: it is complete when this holds
  u32* stored = nullptr;        ///< store: a word of the host's memory
  u32 value = 0;

  u64 size() const { return inlined.empty() ? buffer.size() : inlined.size(); }
};

/// An operation that is not complete.
struct Request {
  Task what;
  u64 number = 0;
  RequestWords words;
  bool posted = false;
  bool on_stream = false;    ///< a stream begins it
  bool sent = false;         ///< send, put, get: in whole; it holds up no other
  u64 moved = 0;             ///< bytes
  u32 chunks = 0;            ///< send, put: number of the last chunk
  std::string text() const;  ///< "the send of 400 bytes to process 1"
};

}  // namespace meshpost::compat::mp
