// What comes: frames, what follows them, the ends of what was started, losses.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "net/mpi/mpi.hpp"
#include "net/mpi/texts.hpp"

namespace meshpost::net::mpi {
namespace {

constexpr std::chrono::seconds patience_after_farewell(1);

}  // namespace

bool Mpi::poll(Events& events) {
  lose_all_where_finalised();
  bool any = false;
  if (!finalised_) {
    any |= read_frames();
    any |= finish_requests();
  }
  any |= tell(events);
  any |= tell_losses(events);
  return any;
}

// MPI matches messages with receives in the order in which these were posted, and frames of one
// peer come in order: so the receives are looked at in that order too.
bool Mpi::read_frames() {
  bool any = false;
  for (std::size_t most = frames_->requests.size(); most > 0; --most) {
    auto const at = frames_->next;
    int over = 0, size = 0;
    MPI_Status status;
    int const result = MPI_Test(&frames_->requests[at], &over, &status);
    if (result == MPI_SUCCESS && !over) return any;
    if (result == MPI_SUCCESS) {
      MPI_Get_count(&status, MPI_BYTE, &size);
      arrived(status.MPI_SOURCE, {frames_->bytes[at].data(), static_cast<std::size_t>(size)});
    }
    frames_->next = (at + 1) % frames_->requests.size();
    any = true;
    // A receive that fails loses nobody in particular: whoever sent it hears of it.
    if (int const posted =
            MPI_Irecv(frames_->bytes[at].data(), frame_bytes, MPI_BYTE, MPI_ANY_SOURCE, own_.tag(),
                      communicator_, &frames_->requests[at]);
        posted != MPI_SUCCESS)
      for (u32 peer = 0; peer < peers_.size(); ++peer) lose(peer, text_of(posted));
  }
  return any;
}

void Mpi::arrived(int rank, std::span<char const> bytes) {
  Frame frame;
  if (bytes.size() < sizeof frame) return;
  std::memcpy(&frame, bytes.data(), sizeof frame);
  auto const found = by_endpoint_.find({rank, frame.number});
  if (found == by_endpoint_.end()) return;  // of an engine that ended before this one began
  u32 const peer = found->second;
  if (peers_[peer].lost) return;
  bytes = bytes.subspan(sizeof frame);
  switch (frame.kind) {
    case Frame::Kind::message: return message_arrives(peer, frame, bytes);
    case Frame::Kind::write: return write_arrives(peer, frame, bytes);
    case Frame::Kind::farewell:
      return lose(peer, fmt::format("the engine of process {} has ended", peer));
  }
  lose(peer, fmt::format("process {} sent something that is no frame", peer));
}

void Mpi::message_arrives(u32 peer, Frame const& frame, std::span<char const> bytes) {
  u64 const here = frame.ticket == 0 ? frame.size : frame.header;
  if (frame.size > most_bytes || here > frame.size || bytes.size() != here)
    return lose(peer, fmt::format("process {} sent a message whose size is wrong", peer));
  auto& transfer = begin(Transfer::Kind::message, peer);
  transfer.size = frame.size;
  transfer.bytes = std::make_shared_for_overwrite<char[]>(frame.size);
  if (!bytes.empty()) std::memcpy(transfer.bytes.get(), bytes.data(), bytes.size());
  receive(transfer, frame, {transfer.bytes.get() + here, frame.size - here});
}

void Mpi::write_arrives(u32 peer, Frame const& frame, std::span<char const> bytes) {
  bool const inside = frame.key < exposed_.size() && frame.offset <= exposed_[frame.key].size() &&
                      frame.size <= exposed_[frame.key].size() - frame.offset;
  if (!inside)
    return lose(peer, fmt::format("process {} writes {} bytes at {} of memory {}, where nothing is "
                                  "exposed",
                                  peer, frame.size, frame.offset, frame.key));
  if (bytes.size() != (frame.ticket == 0 ? frame.size : 0))
    return lose(peer, fmt::format("process {} sent a write whose size is wrong", peer));
  auto& transfer = begin(Transfer::Kind::write, peer);
  transfer.data = frame.data;
  auto const target = exposed_[frame.key].subspan(frame.offset, frame.size);
  std::ranges::copy(bytes, target.begin());
  receive(transfer, frame, target.subspan(bytes.size()));
}

bool Mpi::finish_requests() {
  if (requests_.empty()) return false;
  int count = 0;
  done_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int const result = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                  done_.data(), statuses_.data());
  if (count == MPI_UNDEFINED || count == 0) return false;
  for (int i = 0; i < count; ++i) {
    auto const transfer = of_requests_[static_cast<std::size_t>(done_[i])];
    if (result == MPI_ERR_IN_STATUS && statuses_[i].MPI_ERROR != MPI_SUCCESS) {
      transfer->broken = true;
      lose(transfer->peer, text_of(statuses_[i].MPI_ERROR));
    }
    if (--transfer->requests == 0) over_.splice(over_.end(), transfers_, transfer);
  }
  std::size_t left = 0;  // those that are over are null now
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[left] = requests_[i];
    of_requests_[left++] = of_requests_[i];
  }
  requests_.resize(left);
  of_requests_.resize(left);
  return true;
}

// Whoever is told may start something: nothing here is half done then.
bool Mpi::tell(Events& events) {
  bool const any = !over_.empty() || !ended_.empty();
  for (auto const cookie : std::exchange(ended_, {})) events.on_done(cookie);
  while (!over_.empty()) {
    auto const transfer = std::move(over_.front());
    over_.pop_front();
    --(transfer.kind == Transfer::Kind::out ? outgoing_ : peers_[transfer.peer].arriving);
    if (transfer.broken && transfer.kind != Transfer::Kind::out) continue;
    switch (transfer.kind) {
      case Transfer::Kind::out: events.on_done(transfer.cookie); break;
      case Transfer::Kind::message:
        events.on_message(transfer.peer, {transfer.bytes.get(), transfer.size});
        break;
      case Transfer::Kind::write: events.on_data(transfer.peer, transfer.data); break;
    }
  }
  return any;
}

void Mpi::lose(u32 peer, std::string const& why) {
  if (!peers_[peer].talked_to || std::exchange(peers_[peer].lost, true)) return;
  losses_.push_back({peer, why, Patience(patience_after_farewell)});
}

bool Mpi::tell_losses(Events& events) {
  bool any = false;
  for (std::size_t i = 0; i < losses_.size();) {
    if (peers_[losses_[i].peer].arriving > 0 && !finalised_ && !losses_[i].patience.ends()) {
      ++i;
      continue;
    }
    auto const loss = losses_[i];
    losses_.erase(losses_.begin() + static_cast<long>(i));
    forget(loss.peer);
    events.on_lost(loss.peer, loss.why);
    any = true;
  }
  return any;
}

void Mpi::lose_all_where_finalised() {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (!finalised || std::exchange(finalised_, true)) return;
  for (u32 peer = 0; peer < peers_.size(); ++peer)
    lose(peer, "this process has called MPI_Finalize; end the World before that");
}

}  // namespace meshpost::net::mpi
