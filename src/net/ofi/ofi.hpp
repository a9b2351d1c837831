#pragma once
#include <chrono>
#include <optional>
#include <unordered_map>

#include "net/ofi/operations.hpp"
#include "net/ofi/probe.hpp"
#include "net/ofi/receives.hpp"
#include "net/ofi/stale_files.hpp"
#include "net/ofi/texts.hpp"

// The engine on libfabric (OpenFabrics Interfaces): TCP, InfiniBand, EFA, Slingshot.

namespace meshpost::net::ofi {

class Ofi final : public Engine {
 public:
  Ofi(std::string const& provider, std::string const& bind, Gpus gpus = Gpus::no,
      Quirks const& quirks = {});
  ~Ofi() override;
  Ofi(Ofi const&) = delete;
  Ofi& operator=(Ofi const&) = delete;

  std::string name() const override { return "ofi (" + provider_.name() + ")"; }
  std::string address() const override;
  void connect(std::vector<std::string> const& addresses) override;
  Bytes most() const override { return Bytes{most_bytes}; }
  bool send(u32 peer, std::span<char const> header, std::span<char const> payload,
            u64 cookie) override;
  std::string expose(void* memory, Bytes size) override;
  bool reaches(std::string_view kind) const override {
    return provider_.reaches_gpus && kind == "cuda";
  }
  std::string expose_device(void* memory, Bytes size, std::string_view kind, u32 index) override;
  RemoteMemory import(u32 peer, std::string const& exposed) override;
  bool write(u32 peer, std::span<char const> source, RemoteMemory const& target, u64 offset,
             u32 data, u64 cookie) override;
  bool poll(Events& events) override;
  bool keeps_bytes() const override { return !shared_memory_.empty(); }
  // libfabric's shm (1.17) ends sends in the order in which they began. A send that a killed
  // process should read blocks all later ones.
  bool outlives_peers() const override { return shared_memory_.empty(); }
  void abandon() noexcept override;

  Telling telling() const { return provider_.telling; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    fi_addr_t address = FI_ADDR_UNSPEC;
    bool talked_to = false;
    bool lost = false;       ///< nothing more is started
    bool over = false;       ///< reported as lost
    bool greeting = false;   ///< a greeting is in progress,
    bool unstarted = false;  ///< or waits for room
    std::string native;
    Probe probe;
  };
  struct Loss {
    u32 peer;
    std::string why;
  };
  enum class Outcome { started, no_room, failed };

  Peer& talked_to(u32 peer, char const* operation);

  // Starts the next step of an operation. `failed`: its peer is lost, and the operation has ended.
  Outcome start(u32 index);
  long start_message(u32 index);
  long start_piece(Operation& operation, void* context);
  long start_data(Operation& operation, std::span<char const> bytes, void* context);
  void prepare(u32 index, Preamble::Form form, std::span<char const> header,
               std::span<char const> payload);

  bool read_queue(Events& events);
  bool read_error();
  void arrived(Events& events, fi_cq_data_entry const& entry, fi_addr_t source);
  void received(Events& events, std::span<char const> bytes, u64 size);
  void written(u32 index);
  void go_on(u32 index);
  void end(u32 index);
  void lose(u32 peer, std::string const& why);
  void lose_all(std::string const& why);
  bool tell_ended(Events& events);
  bool tell_losses(Events& events);
  void greet();
  void greet(u32 peer);
  std::string native_address() const;

  Provider provider_;
  u32 number_;
  Handle<fid_fabric> fabric_;
  Handle<fid_domain> domain_;
  Handle<fid_av> addresses_;
  Handle<fid_cq> queue_;
  std::optional<Memory> memory_;  // closed after the endpoint, unless the provider wants it before
  std::optional<Operations> operations_;
  std::optional<Receives> receives_;
  Handle<fid_ep> endpoint_;
  std::string shared_memory_;  // of this endpoint: its name under /dev/shm, over shm,
  Descriptor held_;            // and itself

  std::vector<Peer> peers_;
  std::unordered_map<u32, u32> by_number_;
  std::unordered_map<fi_addr_t, u32> by_address_;
  std::vector<u32> waiting_;  // operations that continue when there is room
  std::vector<u64> ended_;    // cookies to report
  std::vector<Loss> losses_;
  Clock::time_point next_greetings_;
  u32 next_greeted_ = 0;
};

}  // namespace meshpost::net::ofi
