#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "world/secret.hpp"

struct ssl_st;  // OpenSSL's SSL

namespace meshpost {

/// One end of a connection by TLS 1.3 (RFC 8446) between two processes that know one secret.
/// Everything that crosses it is encrypted. Bytes that are changed, left out, repeated or inserted
/// on the way are detected. The secret is the external pre-shared key; there are no certificates.
/// Each connection has fresh keys (Diffie-Hellman over P-256), so it stays unreadable even if the
/// secret becomes known later. This class does not use sockets: bytes for the other end are
/// appended to `out`, to be sent in order.
///
/// One thread at a time.
class Tls {
 public:
  enum class End { acceptor, caller };  ///< process 0; another process

  /// The common part of the connections of a job.
  class Context {
   public:
    /// `bytes_a_key`: after this many bytes sent, another key is used. A key of AES-GCM is good for
    /// 2^24.5 records, 380 GB (RFC 8446, section 5.5).
    /// \throws Error(bad_environment) if OpenSSL lacks what this needs
    explicit Context(Secret const& secret, u64 bytes_a_key = u64{1} << 36);

   private:
    friend class Tls;
    struct State;
    std::shared_ptr<State const> state_;
  };

  /// Cause and remedy of the Error if the other end has another secret.
  static constexpr char const* other_secret = "the secret is another one than process 0's";
  static constexpr char const* same_secret =
      "give all processes the same MESHPOST_SECRET or MESHPOST_SECRET_FILE";
  /// The cause begins with this if the other end has found a change.
  static constexpr char const* other_end_says = "the other end says that ";
  /// At most this many bytes of the other end are read before it has proven that it knows the
  /// secret.
  static constexpr std::size_t most_before_proof = 4096;

  /// At most this many bytes go to the other end in one piece, which it decrypts as a whole.
  static constexpr std::size_t most_together = 16384;

  Tls(Context const& context, End end);

  /// A caller's first bytes; an acceptor has none.
  void begin(std::string& out);
  /// True if the other end has proven that it knows the secret. Until then it may send only the
  /// handshake, and nothing can be sent to it.
  bool is_proven() const { return proven_; }
  /// Takes the bytes that have arrived. Appends the other end's text to `text`, and TLS's answers
  /// to `out`.
  /// \throws Error(bad_environment) if the secrets differ; Error(bad_argument) for garbage and for
  /// changed bytes. After an error, `text` has what came before. The connection is unusable then:
  /// all that is sent later is dropped.
  void receive(std::string_view arrived, std::string& text, std::string& out);
  void send(std::string_view text, std::string& out);
  /// Nothing will be sent any more (close_notify). Without it, TLS does not tell the other end.
  void close(std::string& out);
  /// True if the other end has said that it sends nothing any more.
  bool is_closed() const { return closed_; }

 private:
  struct Free {
    void operator()(ssl_st* ssl) const;
  };
  void check(int result);
  void shake_hands();
  void take_output(std::string& out);

  std::shared_ptr<Context::State const> context_;
  std::unique_ptr<ssl_st, Free> ssl_;
  std::size_t taken_ = 0;  // before it was proven
  u64 until_new_key_;      // bytes to send
  bool proven_ = false, closed_ = false, broken_ = false;
};

}  // namespace meshpost
