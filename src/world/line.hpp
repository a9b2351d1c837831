#pragma once
#include <optional>
#include <string>

#include "meshpost/base/descriptor.hpp"
#include "world/tls.hpp"
#include "world/wire.hpp"

namespace meshpost {

/// A connection by TLS that never blocks. Bytes to be sent wait here until the socket takes them.
/// One thread at a time.
class Line {
 public:
  static constexpr std::size_t most_at_once = std::size_t{1} << 20;

  /// With a caller's Tls, its first bytes wait to be flushed.
  Line(Descriptor socket, Tls tls);

  int socket() const { return socket_.get(); }
  /// True if the other end has proven that it knows the secret. Only then may anything be sent to
  /// it.
  bool is_proven() const { return tls_.is_proven(); }
  void send(wire::Header const& header, std::string_view bytes = {});
  std::size_t output() const { return out_.size() - sent_; }  ///< bytes that wait
  bool has_output() const { return output() > 0; }
  /// Sends as much as the socket takes. If the connection is broken, nothing is kept. Returns true
  /// if the connection stands. Frames that came before it broke can still be received.
  bool flush();
  /// Nothing more will be sent. Messages of the other end still arrive.
  void finish();
  /// Takes in the bytes that have arrived, up to `most_at_once`. The caller must look at these
  /// before more are taken, in case the other end floods. Returns true if the connection stands.
  /// Frames that came before its end are there. TLS may answer the other end: call flush() after
  /// it.
  bool receive();
  /// \throws Error(bad_argument) if the bytes are garbage, or were changed on their way;
  /// Error(bad_environment) if the other end has another secret
  std::optional<wire::Frame> next();
  /// The other end is of the job: from now on frames may be large.
  void trust() { cutter_.set_limit(wire::most); }
  /// How often bytes have arrived that are certainly from the other end.
  u64 heard() const { return heard_; }
  /// Why the connection is broken; empty if the other end closed it.
  std::string const& why() const { return why_; }

 private:
  Descriptor socket_;
  Tls tls_;
  wire::Cutter cutter_{wire::most_before_greeting};
  std::string out_;
  std::size_t sent_ = 0;
  u64 heard_ = 0;
  std::string why_;
  std::optional<Error> broken_;
};

}  // namespace meshpost
