#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "rma/world_state.hpp"

namespace meshpost::detail {

class EndpointState;

/// The streams of a World that are endpoints. A thread looks at them about every 10 ms: it ends
/// those that wait for too long, or for something that will not come.
class Streams : public WorldClient {
 public:
  explicit Streams(WorldState& world) : world_(&world) {}
  ~Streams() override = default;
  Streams(Streams const&) = delete;
  Streams& operator=(Streams const&) = delete;

  /// The World's. \throws Error(misuse)
  static std::shared_ptr<Streams> of(u32 world);

  /// While it lives, the World does not end.
  class Use {
   public:
    WorldState& world() const { return *world_; }

   private:
    friend class Streams;
    explicit Use(Streams& streams) : lock_(streams.using_), world_(streams.world_) {}
    std::shared_lock<std::shared_mutex> lock_;
    WorldState* world_;
  };
  /// \throws Error(misuse) if the World is gone
  Use use(std::string const& operation);
  /// The same; null if it is gone.
  std::optional<Use> use_if_there();

  /// Gives it the smallest number that is free on that device. \throws Error(bad_argument)
  void add(u32 device, std::shared_ptr<EndpointState> const& endpoint);
  void remove(StreamId stream);
  /// As the program has named it; empty if it has not, or if the stream is of another process.
  std::string name_of(StreamId stream);

  // Message windows that a stream used before it failed, and exchanges that it took part in: a
  // message or a step may be half there. The channels belong to the stream's number, so this
  // outlives the endpoint.
  void tear(StreamId stream, std::set<u32> const& windows);
  bool torn(StreamId stream, u32 window);

  // WorldClient
  void release(u32 window) override;
  std::vector<std::string> waiting() override;
  void close() override;

 private:
  struct Entry {
    StreamId id;
    std::weak_ptr<EndpointState> endpoint;
  };
  std::vector<std::shared_ptr<EndpointState>> all();
  void supervise();

  std::shared_mutex using_;  // held while the World is used; before mutex_
  WorldState* world_;        // null: it is gone
  bool ends_ = false;        // the World: calls are refused; guarded by using_
  std::mutex mutex_;         // of the next
  std::vector<Entry> entries_;
  std::set<std::tuple<u32, u32, u32>> torn_;  // device, number, window
  std::condition_variable changed_;
  bool closing_ = false;
  std::thread supervisor_;
};

}  // namespace meshpost::detail
