#include "world/greeting.hpp"

#include "meshpost/base/error.hpp"
#include "meshpost/base/fn.hpp"

namespace meshpost::greeting {
namespace {

constexpr std::string_view magic = "meshpost";
constexpr u32 wire_version = 4;

std::string as_text(Digest const& digest) { return {digest.data(), digest.size()}; }

std::string pack(Hello const& mine) {
  return wire::Packer()
      .value(mine.process)
      .value(mine.processes)
      .value(mine.version)
      .value(mine.pid)
      .text(mine.host)
      .text(mine.job)
      .value(mine.challenge)
      .take();
}

}  // namespace

u32 version() { return wire_version << 16 | abi_version; }

std::string challenge(Digest const& challenge) { return std::string(magic) + as_text(challenge); }

Digest read_challenge(std::string_view bytes) {
  if (bytes.size() != magic.size() + sizeof(Digest) || !bytes.starts_with(magic))
    throw Error(Kind::bad_argument, "read a message", "it is no challenge",
                "find out who sends it: it is no process of meshpost");
  wire::Unpacker unpacker(bytes.substr(magic.size()));
  return unpacker.value<Digest>();
}

std::string hello(Hello const& mine, Digest const& theirs, Secret const& secret) {
  auto const said = pack(mine);
  auto const proof = secret.proof("hello" + as_text(theirs) + said);
  return wire::Packer().text(said).value(proof).take();
}

std::optional<Hello> read_hello(std::string_view bytes, Digest const& mine, Secret const& secret) {
  wire::Unpacker outer(bytes);
  auto const said = outer.text();
  auto const proof = outer.value<Digest>();
  if (!secret.proves("hello" + as_text(mine) + said, proof)) return std::nullopt;
  wire::Unpacker inner(said);
  Hello hello;
  hello.process = inner.value<u32>();
  hello.processes = inner.value<u32>();
  hello.version = inner.value<u32>();
  if (hello.version != version()) return hello;  // what follows may lie elsewhere
  hello.pid = inner.value<i64>();
  hello.host = inner.text();
  hello.job = inner.text();
  hello.challenge = inner.value<Digest>();
  return hello;
}

std::string welcome(Digest const& theirs, Digest const& mine, Secret const& secret) {
  return as_text(secret.proof("welcome" + as_text(theirs) + as_text(mine)));
}

bool read_welcome(std::string_view bytes, Digest const& mine, Digest const& theirs,
                  Secret const& secret) {
  Digest proof{};
  if (bytes.size() != proof.size()) return false;
  std::copy(bytes.begin(), bytes.end(), proof.begin());
  return secret.proves("welcome" + as_text(mine) + as_text(theirs), proof);
}

Keys keys_of_process_0(Digest const& mine, Digest const& theirs, Secret const& secret) {
  auto const both = as_text(mine) + as_text(theirs);
  return {secret.proof("from process 0" + both), secret.proof("to process 0" + both)};
}

Keys keys_of_other(Digest const& mine, Digest const& theirs, Secret const& secret) {
  auto const [out, in] = keys_of_process_0(theirs, mine, secret);
  return {in, out};
}

}  // namespace meshpost::greeting
