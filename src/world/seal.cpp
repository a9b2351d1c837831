#include "world/seal.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>

#include "meshpost/base/error.hpp"

namespace meshpost {
namespace {

void check(bool well) {
  if (!well)
    throw Error(Kind::bad_environment, "mark a message", "OpenSSL has no HMAC-SHA-256",
                "install OpenSSL 3 with its default provider");
}

unsigned char const* as_bytes(void const* bytes) {
  return static_cast<unsigned char const*>(bytes);
}

}  // namespace

void Seal::Free::operator()(evp_mac_ctx_st* context) const { EVP_MAC_CTX_free(context); }

Seal::Seal(Digest const& key) {
  std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> const hmac(
      EVP_MAC_fetch(nullptr, "HMAC", nullptr), EVP_MAC_free);
  check(hmac != nullptr);
  context_.reset(EVP_MAC_CTX_new(hmac.get()));
  char name[] = "SHA256";
  OSSL_PARAM const parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
                                   OSSL_PARAM_construct_end()};
  check(context_ && EVP_MAC_init(context_.get(), as_bytes(key.data()), key.size(), parameters));
}

Seal::Mark Seal::next(std::string_view bytes) {
  auto* const context = context_.get();
  Digest whole;
  std::size_t size = 0;
  // Null for the key: the one before.
  check(
      EVP_MAC_init(context, nullptr, 0, nullptr) &&
      EVP_MAC_update(context, as_bytes(&number_), sizeof number_) &&
      EVP_MAC_update(context, as_bytes(bytes.data()), bytes.size()) &&
      EVP_MAC_final(context, reinterpret_cast<unsigned char*>(whole.data()), &size, whole.size()));
  ++number_;
  Mark mark;
  std::copy_n(whole.begin(), mark.size(), mark.begin());
  return mark;
}

bool Seal::proves_next(std::string_view bytes, Mark const& mark) {
  auto const right = next(bytes);
  return CRYPTO_memcmp(right.data(), mark.data(), mark.size()) == 0;
}

}  // namespace meshpost
