#pragma once
#include <optional>
#include <string>

#include "meshpost/base/descriptor.hpp"
#include "world/tls.hpp"
#include "world/wire.hpp"

namespace meshpost {

/// A connection by TLS that never blocks: what is sent waits here until the socket takes it.
/// One thread at a time.
class Line {
 public:
  static constexpr std::size_t most_at_once = std::size_t{1} << 20;

  /// A caller's first bytes wait to be flushed.
  Line(Descriptor socket, Tls tls);

  int socket() const { return socket_.get(); }
  /// Whether the other end has proven that it knows the secret: it may be sent something.
  bool is_proven() const { return tls_.is_proven(); }
  void send(wire::Header const& header, std::string_view bytes = {});
  std::size_t output() const { return out_.size() - sent_; }  ///< bytes that wait
  bool has_output() const { return output() > 0; }
  /// Sends what the socket takes; nothing is kept for a connection that is broken. Whether it
  /// stands. What came before it broke may still be received.
  bool flush();
  /// Nothing more will be sent; what the other end sends still arrives.
  void finish();
  /// Takes in what has arrived, up to `most_at_once`: what a flood sends must be looked at before
  /// more is taken. Whether the connection stands; frames that came before its end are there. What
  /// the other end asks for by that is to be flushed.
  bool receive();
  /// \throws Error(bad_argument) if what arrived is garbage, or was changed on its way;
  /// Error(bad_environment) if the other end has another secret
  std::optional<wire::Frame> next();
  /// The other end is of the job: frames may be large from here on.
  void trust() { cutter_.set_limit(wire::most); }
  /// How often something has arrived that is the other end's for sure.
  u64 heard() const { return heard_; }
  /// Why it stands no more; empty: the other end closed it.
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
