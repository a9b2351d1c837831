#pragma once
#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "rma/runs/launching/agreement.hpp"
#include "rma/runs/launching/queue.hpp"
#include "rma/windows/endpoint_counters.hpp"
#include "rma/windows/host_endpoint.hpp"
#include "rma/world_memory.hpp"
#include "world/questions.hpp"

namespace meshpost::detail {

/// Bytes that are there before a counter is raised. The same message writes them if it can.
struct BytesBefore {
  GlobalAddress address{};
  void const* source = nullptr;
  u64 bytes = 0;
};

/// Questions of a process to another: to read and write memory of its devices, and to raise
/// counters there. Also the answers to other processes, on the threads for their questions.
class FarMemory : WorldMemory {
 public:
  FarMemory(WorldMemory const& memory, RunQueue& runs, HostEndpoint& endpoint,
            EndpointCounters& endpoints, Agreement const& agreement, std::string const& engine);
  ~FarMemory() = default;
  FarMemory(FarMemory const&) = delete;
  FarMemory& operator=(FarMemory const&) = delete;

  /// Reads if there is a target, else writes. \throws Error(peer_lost)
  void transfer(GlobalAddress address, void* target, void const* source, u64 bytes) const;
  /// The same for a piece of a write, without waiting. The bytes may change then, and end_write()
  /// or drop() must follow. \throws Error(peer_lost)
  Questions::Begun begin_write(GlobalAddress address, void const* source, u64 bytes) const;
  void end_write(Questions::Begun begun) const;
  /// After an error: waits until it is not carried out later.
  void drop(Questions::Begun const& begun) const { questions_.drop(begun); }
  static constexpr u64 most_under_way = 8;  ///< pieces of a write or read
  /// The counter of `count` is an offset. \throws Error(peer_lost)
  void raise(u32 device, via::Signal const& count, BytesBefore const& before = {}) const;
  /// The same for a stream of another process's device, or for that process's host.
  void raise(WindowInfo const& window, StreamId stream, Tag tag,
             BytesBefore const& before = {}) const;
  void raise(WindowInfo const& window, HostId host, Tag tag, BytesBefore const& before = {}) const;

  /// Questions::end(), hangs()
  void end(bool agreed) { questions_.end(agreed); }
  bool hangs() const { return questions_.hangs(); }

 private:
  u64 most_in_question(u32 process) const;
  std::string text_before(u32 process, BytesBefore const& before) const;
  void ask_to_raise(std::string const& operation, u32 process, BytesBefore const& before,
                    std::string_view question) const;
  Questions::Begun begin(std::string const& operation, u32 process, std::string question) const;
  std::string end(std::string const& operation, Questions::Begun begun) const;
  std::string answer(std::string_view question);
  std::string carry_out(std::string_view question, bool behind_another);

  RunQueue& runs_;
  HostEndpoint& endpoint_;
  EndpointCounters& endpoints_;
  Agreement const& agreement_;
  std::atomic<u64> answers_{0};
  mutable Questions questions_;
};

}  // namespace meshpost::detail
