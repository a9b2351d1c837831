#pragma once
#include <memory>
#include <string_view>

#include "world/secret.hpp"

struct evp_mac_ctx_st;  // OpenSSL's EVP_MAC_CTX

namespace meshpost {

/// Marks what goes one way over a connection, part by part, so that its other end finds what was
/// changed, left out, repeated, put in or put elsewhere: HMAC-SHA-256 of the part's number and
/// bytes, cut to 16 bytes (RFC 2104, section 5). Both ends have one with the same key.
class Seal {
 public:
  using Mark = std::array<char, 16>;

  explicit Seal(Digest const& key);

  /// Of the next part.
  Mark next(std::string_view bytes);
  /// Whether `mark` is that of the next part. Takes the same time wherever they differ.
  bool proves_next(std::string_view bytes, Mark const& mark);

 private:
  struct Free {
    void operator()(evp_mac_ctx_st* context) const;
  };
  std::unique_ptr<evp_mac_ctx_st, Free> context_;
  u64 number_ = 0;
};

}  // namespace meshpost
