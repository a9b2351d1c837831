#include "world/tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <limits>

#include "meshpost/base/error.hpp"

namespace meshpost {
namespace {

constexpr std::string_view identity = "meshpost";  // of the key; it is no secret
static_assert(Tls::most_together == SSL3_RT_MAX_PLAIN_LENGTH);
constexpr u64 overhead = 64;  // bytes that a record counts, beside its own

void need(bool there) {
  if (there) return;
  auto const* const why = ERR_reason_error_string(ERR_peek_last_error());
  throw Error(Kind::bad_environment, "join the job",
              fmt::format("OpenSSL can't do TLS 1.3 with a pre-shared key: {}",
                          why ? why : "it does not say why"),
              "install OpenSSL 3 with its default provider; see its configuration (openssl.cnf)");
}

SSL_SESSION* session_of(SSL* ssl, Secret const& secret) {
  static constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
  auto const* const cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
  auto* const session = SSL_SESSION_new();
  auto const& key = secret.bytes();
  if (session && cipher &&
      SSL_SESSION_set1_master_key(session, reinterpret_cast<unsigned char const*>(key.data()),
                                  key.size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

Secret const& secret_for(SSL const* ssl) {
  return *static_cast<Secret const*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
}

int use_secret(SSL* ssl, EVP_MD const* hash, unsigned char const** name, std::size_t* size,
               SSL_SESSION** session) {
  *session = nullptr;  // "no such key", unless we find one
  if (hash && EVP_MD_get_type(hash) != NID_sha256) return 1;
  *session = session_of(ssl, secret_for(ssl));
  *name = reinterpret_cast<unsigned char const*>(identity.data());
  *size = identity.size();
  return *session ? 1 : 0;
}

int find_secret(SSL* ssl, unsigned char const* name, std::size_t size, SSL_SESSION** session) {
  *session = nullptr;
  if (std::string_view(reinterpret_cast<char const*>(name), size) != identity) return 1;
  *session = session_of(ssl, secret_for(ssl));
  return *session ? 1 : 0;
}

// The alert that the other end sent about our bytes; 0: none.
int alert_in(unsigned long error) {
  int const reason = ERR_GET_REASON(error);
  return ERR_GET_LIB(error) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET
             ? reason - SSL_AD_REASON_OFFSET
             : 0;
}

Error failure(unsigned long error, bool proven) {
  int const alert = alert_in(error), reason = ERR_GET_REASON(error);
  auto const* const text = ERR_reason_error_string(error);
  bool const denied = alert == SSL_AD_ILLEGAL_PARAMETER || alert == SSL_AD_DECRYPT_ERROR;
  if (!proven && (denied || reason == SSL_R_BINDER_DOES_NOT_VERIFY))
    return {Kind::bad_environment, "join the job", Tls::other_secret, Tls::same_secret};
  std::string cause = "a message was changed on its way, or left out";
  if (proven && alert != 0) cause = Tls::other_end_says + cause;
  if (!proven)
    cause = reason == SSL_R_CERTIFICATE_VERIFY_FAILED
                ? "it shows a certificate instead of knowing the secret"
                : fmt::format("it does not greet as this version does ({})", text ? text : "TLS");
  return {Kind::bad_argument, "read a message", cause,
          proven ? "find out what lies between the hosts, then start the job again"
                 : "find out who sends it: it is no process of this job"};
}

}  // namespace

struct Tls::Context::State {
  State(Secret const& known, u64 bytes) : secret(known), bytes_a_key(bytes) {}
  ~State() { SSL_CTX_free(context); }
  State(State const&) = delete;
  State& operator=(State const&) = delete;

  Secret secret;
  u64 bytes_a_key;
  SSL_CTX* context = SSL_CTX_new(TLS_method());
};

Tls::Context::Context(Secret const& secret, u64 bytes_a_key) {
  auto const state = std::make_shared<State>(secret, bytes_a_key);
  auto* const context = state->context;
  need(context != nullptr);
  need(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
       SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
       SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") ==
           1 &&
       SSL_CTX_set1_groups_list(context, "P-256") == 1 && SSL_CTX_set_num_tickets(context, 0) == 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_clear_options(context, SSL_OP_ALLOW_NO_DHE_KEX | SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);  // a job may have a thousand connections
  SSL_CTX_set_app_data(context, const_cast<Secret*>(&state->secret));
  SSL_CTX_set_psk_use_session_callback(context, use_secret);
  SSL_CTX_set_psk_find_session_callback(context, find_secret);
  state_ = state;
}

void Tls::Free::operator()(SSL* ssl) const { SSL_free(ssl); }

Tls::Tls(Context const& context, End end)
    : context_(context.state_),
      ssl_(SSL_new(context_->context)),
      until_new_key_(context_->bytes_a_key) {
  BIO* const in = ssl_ ? BIO_new(BIO_s_mem()) : nullptr;
  BIO* const out = ssl_ ? BIO_new(BIO_s_mem()) : nullptr;
  if (ssl_) SSL_set_bio(ssl_.get(), in, out);
  need(in && out);
  if (end == End::acceptor) {
    SSL_set_accept_state(ssl_.get());
    return;
  }
  SSL_set_connect_state(ssl_.get());
  // No certificate is accepted: a peer that shows one does not know the secret.
  SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
}

void Tls::begin(std::string& out) {
  shake_hands();
  take_output(out);
}

// `result` of an operation: it has done its work, or needs more bytes, or has failed for good.
void Tls::check(int result) {
  auto const error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_NONE || error == SSL_ERROR_WANT_READ) return;
  if (error == SSL_ERROR_ZERO_RETURN) {
    closed_ = true;
    return;
  }
  broken_ = true;
  throw failure(ERR_peek_error(), proven_);
}

void Tls::shake_hands() {
  ERR_clear_error();
  int const result = SSL_do_handshake(ssl_.get());
  check(result);
  proven_ = result == 1;
  if (!proven_ || SSL_session_reused(ssl_.get())) return;
  proven_ = false;
  broken_ = true;
  throw Error(Kind::bad_argument, "read a message", "it does not know the secret",
              "find out who sends it: it is no process of this job");
}

void Tls::receive(std::string_view arrived, std::string& text, std::string& out) {
  if (broken_) return;
  auto* const in = SSL_get_rbio(ssl_.get());
  try {
    if (!proven_) taken_ += arrived.size();
    while (!arrived.empty()) {
      auto const piece = arrived.substr(0, std::numeric_limits<int>::max());
      BIO_write(in, piece.data(), static_cast<int>(piece.size()));
      arrived.remove_prefix(piece.size());
    }
    if (!proven_) shake_hands();
    if (!proven_ && taken_ >= most_before_proof) {
      broken_ = true;
      throw Error(Kind::bad_argument, "read a message",
                  fmt::format("it greets with more than {} bytes", most_before_proof),
                  "find out who sends it: it is no process of this job");
    }
    std::array<char, most_together> said;
    for (std::size_t size = 1; proven_ && size > 0;) {
      ERR_clear_error();
      size = 0;
      check(SSL_read_ex(ssl_.get(), said.data(), said.size(), &size));
      text.append(said.data(), size);
    }
  } catch (Error const&) {
    take_output(out);  // the alert that says why
    throw;
  }
  take_output(out);
}

void Tls::send(std::string_view text, std::string& out) {
  while (!broken_ && !text.empty()) {
    auto const piece = text.substr(0, most_together);
    std::size_t size = 0;
    ERR_clear_error();
    if (until_new_key_ < piece.size() + overhead &&
        SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
      until_new_key_ = context_->bytes_a_key;
    broken_ = SSL_write_ex(ssl_.get(), piece.data(), piece.size(), &size) != 1;
    until_new_key_ -= std::min(until_new_key_, piece.size() + overhead);
    text.remove_prefix(piece.size());
    take_output(out);
  }
}

void Tls::close(std::string& out) {
  if (broken_ || !proven_) return;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  take_output(out);
}

void Tls::take_output(std::string& out) {
  auto* const from = SSL_get_wbio(ssl_.get());
  auto const size = BIO_ctrl_pending(from), before = out.size();
  out.resize(before + size);
  if (size > 0) BIO_read(from, out.data() + before, static_cast<int>(size));
}

}  // namespace meshpost
