#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "world/secret.hpp"

struct ssl_st;  // OpenSSL's SSL

namespace meshpost {

/// One end of a connection by TLS 1.3 (RFC 8446) between two processes that know one secret. What
/// crosses it is encrypted; bytes that are changed, left out, repeated or put in on the way are
/// found. The secret is the external pre-shared key; there are no certificates. Each connection has
/// fresh keys (Diffie-Hellman over P-256): a secret that becomes known later does not make it
/// readable.
///
/// Knows no socket: what goes to the other end is appended to `out`, as bytes to be sent in order.
/// One thread at a time.
class Tls {
 public:
  enum class End { acceptor, caller };  ///< process 0; another process

  /// What the connections of a job have in common.
  class Context {
   public:
    /// `bytes_a_key`: so many are sent before another key is used. A key of AES-GCM is good for
    /// 2^24.5 records, 380 GB (RFC 8446, section 5.5).
    /// \throws Error(bad_environment) where OpenSSL lacks what this needs
    explicit Context(Secret const& secret, u64 bytes_a_key = u64{1} << 36);

   private:
    friend class Tls;
    struct State;
    std::shared_ptr<State const> state_;
  };

  /// The cause, and the remedy, of the Error where the other end has another secret.
  static constexpr char const* other_secret = "the secret is another one than process 0's";
  static constexpr char const* same_secret =
      "give all processes the same MESHPOST_SECRET or MESHPOST_SECRET_FILE";
  /// With this begins the cause where the other end has found that something was changed.
  static constexpr char const* other_end_says = "the other end says that ";
  /// Bytes of the other end that are looked at before it has proven that it knows the secret.
  static constexpr std::size_t most_before_proof = 4096;

  /// Bytes that go to the other end in one piece, which it decrypts as a whole.
  static constexpr std::size_t most_together = 16384;

  Tls(Context const& context, End end);

  /// A caller's first bytes; an acceptor has none.
  void begin(std::string& out);
  /// Whether the other end has proven that it knows the secret. Until then it must send nothing
  /// but the handshake, and nothing can be sent to it.
  bool is_proven() const { return proven_; }
  /// Takes what has arrived; appends what it says to `text`, and what it asks for to `out`.
  /// \throws Error(bad_environment) where the secrets differ; Error(bad_argument) for garbage and
  /// for what was changed on its way. What came before is in `text`, and the connection is of no
  /// use any more: what is sent from then on is dropped.
  void receive(std::string_view arrived, std::string& text, std::string& out);
  void send(std::string_view text, std::string& out);
  /// Nothing will be sent any more (close_notify). Without it, nothing is said to the other end.
  void close(std::string& out);
  /// Whether the other end has said that it sends nothing any more.
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
