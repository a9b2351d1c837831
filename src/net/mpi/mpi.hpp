#pragma once
#include <mpi.h>

#include <array>
#include <list>
#include <map>
#include <memory>

#include "base/patience.hpp"
#include "net/engine.hpp"
#include "net/mpi/frame.hpp"

// The engine on MPI: two-sided messages, as every MPI has them.
//
// A frame tells what comes: it goes to the tag of the peer's engine, where `Frames` receives it.
// Short bytes are in it. Longer ones follow as a message of their own, under a tag that the sender
// draws for them (a ticket), from the source itself; whoever reads the frame receives them straight
// into their place. So neither side copies them, and what has been received is there: MPI itself
// says when a write has arrived.

namespace meshpost::net::mpi {

class Mpi final : public Engine {
 public:
  /// `communicator`: the engine's peers are processes of it. Stays valid as long as the engine.
  explicit Mpi(MPI_Comm communicator);
  ~Mpi() override;
  Mpi(Mpi const&) = delete;
  Mpi& operator=(Mpi const&) = delete;

  std::string name() const override { return "mpi"; }
  std::string address() const override;
  void connect(std::vector<std::string> const& addresses) override;
  Bytes most() const override { return Bytes{most_bytes}; }
  bool send(u32 peer, std::span<char const> header, std::span<char const> payload,
            u64 cookie) override;
  std::string expose(void* memory, Bytes size) override;
  RemoteMemory import(u32 peer, std::string const& exposed) override;
  bool write(u32 peer, std::span<char const> source, RemoteMemory const& target, u64 offset,
             u32 data, u64 cookie) override;
  bool poll(Events& events) override;
  // MPI says nothing of what its calls do when a process of the communicator was killed.
  bool outlives_peers() const override { return false; }

 private:
  static constexpr u64 most_bytes = u64{1} << 20;

  struct Peer {
    bool talked_to = false;
    bool lost = false;  ///< nothing is started any more
    int rank = 0;
    Endpoint endpoint;
    u32 arriving = 0;  ///< transfers from it
  };
  /// What a frame has begun, until the last of its requests is over.
  struct Transfer {
    enum class Kind { out, message, write } kind = Kind::out;
    u32 peer = 0;
    u32 requests = 0;
    u64 cookie = 0;                 ///< out
    u32 data = 0;                   ///< write
    bool broken = false;            ///< MPI has refused part of it
    std::shared_ptr<char[]> bytes;  ///< out: the frame, and what was copied; message: itself
    u64 size = 0;                   ///< message
    std::list<Transfer>::iterator self{};
  };
  using Transfers = std::list<Transfer>;
  struct Loss {
    u32 peer;
    std::string why;
    Patience patience;  ///< for what it has sent before to arrive
  };

  Peer& talked_to(u32 peer, char const* operation);
  Transfer& begin(Transfer::Kind kind, u32 peer);
  void end_if_over(Transfer& transfer);
  void started(int result, MPI_Request const& request, Transfer& transfer);
  void send_frame(Transfer& transfer, Frame const& frame, u64 with, std::span<char const> follows);
  void receive(Transfer& transfer, Frame const& frame, std::span<char> target);

  bool read_frames();
  void arrived(int rank, std::span<char const> bytes);
  void message_arrives(u32 peer, Frame const& frame, std::span<char const> bytes);
  void write_arrives(u32 peer, Frame const& frame, std::span<char const> bytes);
  bool finish_requests();
  void lose(u32 peer, std::string const& why);
  bool tell(Events& events);
  bool tell_losses(Events& events);
  void forget(u32 peer);
  void lose_all_where_finalised();

  MPI_Comm communicator_;
  Endpoint own_;
  std::vector<Peer> peers_;
  std::map<std::pair<int, u32>, u32> by_endpoint_;  // (rank, number) -> peer
  std::vector<std::span<char>> exposed_;            // by key
  Transfers transfers_, over_;                      // over: to be told
  u32 outgoing_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<Transfers::iterator> of_requests_;
  std::vector<int> done_;  // what Testsome says
  std::vector<MPI_Status> statuses_;
  std::vector<u64> ended_;  // cookies to tell
  std::vector<Loss> losses_;
  bool finalised_ = false;

  struct Frames {  // receives under way, in the order in which they are matched
    std::array<std::array<char, frame_bytes>, 64> bytes;
    std::array<MPI_Request, 64> requests;
    std::size_t next = 0;
  };
  std::unique_ptr<Frames> frames_ = std::make_unique<Frames>();
};

}  // namespace meshpost::net::mpi
