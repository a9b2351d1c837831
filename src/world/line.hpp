#pragma once
#include <string>

#include "meshpost/base/descriptor.hpp"
#include "world/greeting.hpp"

namespace meshpost {

/// A connection that never blocks: what is sent waits here until the socket takes it.
/// One thread at a time.
class Line {
 public:
  static constexpr std::size_t most_at_once = std::size_t{1} << 20;

  Line(Descriptor socket, u32 limit) : socket_(std::move(socket)), cutter_(limit) {}

  int socket() const { return socket_.get(); }
  void send(wire::Header const& header, std::string_view bytes = {}) {
    wire::pack_onto(out_, header, bytes, seal_ ? &*seal_ : nullptr);
  }
  std::size_t output() const { return out_.size() - sent_; }  ///< bytes that wait
  bool has_output() const { return output() > 0; }
  /// Sends what the socket takes; nothing is kept for a connection that is broken. Whether it
  /// stands. What came before it broke may still be received.
  bool flush();
  /// Nothing more will be sent; what the other end sends still arrives.
  void finish();
  /// Takes in what has arrived, up to `most_at_once`: what a flood sends must be looked at before
  /// more is taken. Whether the connection stands; frames that came before its end are there.
  bool receive();
  /// \throws Error(bad_argument) if what arrived is garbage, or was changed on its way
  std::optional<wire::Frame> next() { return cutter_.next(); }
  /// After the greeting: what is sent from here on is marked, what comes must be, and may be large.
  void trust(greeting::Keys const& keys) {
    seal_.emplace(keys.out);
    cutter_.trust(wire::most, Seal(keys.in));
  }
  u64 heard() const { return heard_; }  ///< how often something has arrived
  /// Why it stands no more; empty: the other end closed it.
  std::string const& why() const { return why_; }

 private:
  Descriptor socket_;
  wire::Cutter cutter_;
  std::optional<Seal> seal_;
  std::string out_;
  std::size_t sent_ = 0;
  u64 heard_ = 0;
  std::string why_;
};

}  // namespace meshpost
