#include "rma/via/proxy/wire_message.hpp"

#include <utility>

#include "base/hash.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::detail {

void refuse_message(std::string cause) {
  throw Error(Kind::peer_lost, "receive a message", std::move(cause),
              "start the job again; if it happens again, report it");
}

u64 sum_of(std::string_view bytes) {
  u64 const sum = hash_of(bytes);
  return sum == 0 ? 1 : sum;
}

}  // namespace meshpost::detail
