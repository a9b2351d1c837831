#include "net/misuse.hpp"

namespace meshpost::net {

void check_first_connect(std::string const& engine, bool connected) {
  if (connected)
    throw Error(Kind::misuse, engine + ": connect", "it was called before",
                "call it once for each engine");
}

void check_message(std::string const& engine, u64 size, u64 most) {
  if (size > most)
    throw Error(Kind::bad_argument, engine + ": send",
                std::to_string(size) + " bytes are more than " + std::to_string(most),
                "send smaller messages, or write()");
}

void check_exposed(std::string const& engine, void const* memory, Bytes size) {
  if (!memory || size == 0)
    throw Error(Kind::bad_argument, engine + ": expose", "there is no memory of 0 bytes",
                "give it some");
}

void refuse_peer(std::string const& engine, std::string const& operation, u32 peer) {
  throw Error(Kind::bad_argument, engine + ": " + operation,
              "peer " + std::to_string(peer) + " was given no address",
              "name it when the engine is connected");
}

}  // namespace meshpost::net
