#include "net/mpi/mpi.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "meshpost/base/error.hpp"
#include "net/misuse.hpp"
#include "net/mpi/texts.hpp"

namespace meshpost::net::mpi {
namespace {

constexpr u32 operations_at_once = 256;
constexpr u64 short_bytes = frame_bytes - sizeof(Frame);
constexpr u64 piece_bytes = u64{1} << 30;  // MPI counts in int

[[noreturn]] void refuse(std::string const& what, std::string const& cause) {
  throw Error(Kind::bad_environment, "mpi: " + what, cause,
              "pass the text that the same engine of that process returned");
}

// Memory that MPI may still read after its engine has ended: its receiver may never receive it.
struct Kept {
  MPI_Request request;
  std::shared_ptr<char[]> bytes;
};
void keep(MPI_Request request, std::shared_ptr<char[]> bytes) {
  static std::mutex mutex;
  static auto& all = *new std::list<Kept>;
  std::scoped_lock const lock(mutex);
  all.push_back({request, std::move(bytes)});
  all.remove_if([](Kept& one) {
    int over = 0;
    return MPI_Test(&one.request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS || over;
  });
}

char* copy_to(char* at, std::span<char const> bytes) {
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  return at + bytes.size();
}

}  // namespace

Mpi::Mpi(MPI_Comm communicator) : communicator_(communicator), own_(Endpoint::draw()) {
  for (std::size_t i = 0; i < frames_->requests.size(); ++i)
    check(MPI_Irecv(frames_->bytes[i].data(), frame_bytes, MPI_BYTE, MPI_ANY_SOURCE, own_.tag(),
                    communicator_, &frames_->requests[i]),
          "MPI_Irecv");
}

Mpi::~Mpi() {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (finalised) {  // MPI has ended its requests, but does not say if it still uses their memory
    [[maybe_unused]] auto const* const kept = frames_.release();
    return;
  }
  for (auto const& peer : peers_) {
    if (!peer.talked_to || peer.lost) continue;
    auto bytes = std::make_shared_for_overwrite<char[]>(sizeof(Frame));
    Frame const farewell{.number = own_.number, .kind = Frame::Kind::farewell};
    std::memcpy(bytes.get(), &farewell, sizeof farewell);
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Isend(bytes.get(), sizeof farewell, MPI_BYTE, peer.rank, peer.endpoint.tag(),
                  communicator_, &request) == MPI_SUCCESS)
      keep(request, std::move(bytes));
  }
  for (u32 peer = 0; peer < peers_.size(); ++peer) forget(peer);
  for (auto& request : frames_->requests) {
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);  // a cancelled receive: it completes without a sender
  }
}

std::string Mpi::address() const {
  int rank = 0;
  MPI_Comm_rank(communicator_, &rank);
  return address_text(rank, own_);
}

void Mpi::connect(std::vector<std::string> const& addresses) {
  check_first_connect("mpi", !peers_.empty());
  int processes = 0;
  MPI_Comm_size(communicator_, &processes);
  std::vector<Peer> peers(addresses.size());
  for (u32 peer = 0; peer < peers.size(); ++peer) {
    if (addresses[peer].empty()) continue;
    auto const attempted = "connect to peer " + std::to_string(peer);
    auto const address = address_from(addresses[peer]);
    if (!address) refuse(attempted, "'" + addresses[peer] + "' is no address of this engine");
    auto const [rank, endpoint] = *address;
    if (rank >= processes)
      refuse(attempted, "it is rank " + std::to_string(rank) + " of a communicator of " +
                            std::to_string(processes));
    if (addresses[peer] == this->address()) refuse(attempted, "it is this engine itself");
    if (!by_endpoint_.emplace(std::pair{rank, endpoint.number}, peer).second)
      refuse(attempted, "another peer has the same address '" + addresses[peer] + "'");
    peers[peer].talked_to = true;
    peers[peer].rank = rank;
    peers[peer].endpoint = endpoint;
  }
  peers_ = std::move(peers);
}

Mpi::Peer& Mpi::talked_to(u32 peer, char const* operation) {
  return known_peer(peers_, peer, "mpi", operation);
}

bool Mpi::send(u32 peer, std::span<char const> header, std::span<char const> payload, u64 cookie) {
  auto const& target = talked_to(peer, "send");
  u64 const size = header.size() + payload.size();
  check_message("mpi", size, most_bytes);
  lose_all_where_finalised();
  if (target.lost) return ended_.push_back(cookie), true;
  if (outgoing_ == operations_at_once) return false;
  auto& transfer = begin(Transfer::Kind::out, peer);
  transfer.cookie = cookie;
  Frame frame{.number = own_.number, .kind = Frame::Kind::message, .size = size};
  if (size <= short_bytes) {
    transfer.bytes = std::make_shared_for_overwrite<char[]>(sizeof frame + size);
    copy_to(copy_to(transfer.bytes.get() + sizeof frame, header), payload);
    send_frame(transfer, frame, size, {});
  } else if (header.size() <= short_bytes) {
    frame.header = static_cast<u32>(header.size());
    frame.ticket = draw_ticket();
    transfer.bytes = std::make_shared_for_overwrite<char[]>(sizeof frame + header.size());
    copy_to(transfer.bytes.get() + sizeof frame, header);
    send_frame(transfer, frame, header.size(), payload);
  } else {  // both follow in one message: the header must be copied
    frame.ticket = draw_ticket();
    transfer.bytes = std::make_shared_for_overwrite<char[]>(sizeof frame + size);
    copy_to(copy_to(transfer.bytes.get() + sizeof frame, header), payload);
    send_frame(transfer, frame, 0, {transfer.bytes.get() + sizeof frame, size});
  }
  return true;
}

bool Mpi::write(u32 peer, std::span<char const> source, RemoteMemory const& target, u64 offset,
                u32 data, u64 cookie) {
  auto const& known = talked_to(peer, "write");
  lose_all_where_finalised();
  if (known.lost) return ended_.push_back(cookie), true;
  if (outgoing_ == operations_at_once) return false;
  auto& transfer = begin(Transfer::Kind::out, peer);
  transfer.cookie = cookie;
  Frame frame{.number = own_.number, .kind = Frame::Kind::write, .size = source.size()};
  frame.key = target.key, frame.offset = target.base + offset, frame.data = data;
  bool const follows = source.size() > short_bytes;
  transfer.bytes =
      std::make_shared_for_overwrite<char[]>(sizeof frame + (follows ? 0 : source.size()));
  if (follows) {
    frame.ticket = draw_ticket();
    send_frame(transfer, frame, 0, source);
  } else {
    copy_to(transfer.bytes.get() + sizeof frame, source);
    send_frame(transfer, frame, source.size(), {});
  }
  return true;
}

std::string Mpi::expose(void* memory, Bytes size) {
  check_exposed("mpi", memory, size);
  exposed_.emplace_back(static_cast<char*>(memory), size);
  return memory_text(exposed_.size() - 1);
}

RemoteMemory Mpi::import(u32 peer, std::string const& exposed) {
  talked_to(peer, "import");
  auto const key = memory_from(exposed);
  if (!key)
    refuse("import of peer " + std::to_string(peer), "'" + exposed + "' is no exposed memory");
  return {0, *key};
}

Mpi::Transfer& Mpi::begin(Transfer::Kind kind, u32 peer) {
  auto& transfer = transfers_.emplace_back();
  transfer.kind = kind, transfer.peer = peer;
  ++(kind == Transfer::Kind::out ? outgoing_ : peers_[peer].arriving);
  transfer.self = std::prev(transfers_.end());
  return transfer;
}

// The frame's own send is synchronous: it ends when the peer has matched it. So messages that a
// peer does not read are limited to operations_at_once.
void Mpi::send_frame(Transfer& transfer, Frame const& frame, u64 with,
                     std::span<char const> follows) {
  auto const& peer = peers_[transfer.peer];
  std::memcpy(transfer.bytes.get(), &frame, sizeof frame);
  MPI_Request request = MPI_REQUEST_NULL;
  int result = MPI_Issend(transfer.bytes.get(), static_cast<int>(sizeof frame + with), MPI_BYTE,
                          peer.rank, peer.endpoint.tag(), communicator_, &request);
  started(result, request, transfer);
  while (!follows.empty()) {
    auto const piece = follows.first(std::min<u64>(follows.size(), piece_bytes));
    result = MPI_Isend(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, peer.rank,
                       static_cast<int>(frame.ticket), communicator_, &request);
    started(result, request, transfer);
    follows = follows.subspan(piece.size());
  }
  end_if_over(transfer);
}

// Pieces match in order: MPI's messages between two processes with one tag don't overtake each
// other.
void Mpi::receive(Transfer& transfer, Frame const& frame, std::span<char> target) {
  MPI_Request request = MPI_REQUEST_NULL;
  while (!target.empty()) {
    auto const piece = target.first(std::min<u64>(target.size(), piece_bytes));
    int const result = MPI_Irecv(piece.data(), static_cast<int>(piece.size()), MPI_BYTE,
                                 peers_[transfer.peer].rank, static_cast<int>(frame.ticket),
                                 communicator_, &request);
    started(result, request, transfer);
    target = target.subspan(piece.size());
  }
  end_if_over(transfer);
}

void Mpi::started(int result, MPI_Request const& request, Transfer& transfer) {
  if (result != MPI_SUCCESS) {
    transfer.broken = true;
    return lose(transfer.peer, text_of(result));
  }
  ++transfer.requests;
  requests_.push_back(request);
  of_requests_.push_back(transfer.self);
}

void Mpi::end_if_over(Transfer& transfer) {
  if (transfer.requests == 0 && !transfer.broken)
    over_.splice(over_.end(), transfers_, transfer.self);
}

// Ends all operations with a lost peer.
void Mpi::forget(u32 peer) {
  for (std::size_t i = requests_.size(); i-- > 0;) {
    auto& transfer = *of_requests_[i];
    if (transfer.peer != peer) continue;
    if (!finalised_ && transfer.kind != Transfer::Kind::out) MPI_Cancel(&requests_[i]);
    if (!finalised_) keep(requests_[i], transfer.bytes);
    requests_[i] = requests_.back(), requests_.pop_back();
    of_requests_[i] = of_requests_.back(), of_requests_.pop_back();
  }
  for (auto at = transfers_.begin(); at != transfers_.end();) {
    auto const one = at++;
    if (one->peer != peer) continue;
    if (one->kind == Transfer::Kind::out) ended_.push_back(one->cookie), --outgoing_;
    else --peers_[peer].arriving;
    transfers_.erase(one);
  }
}

}  // namespace meshpost::net::mpi
