// Communication of a two-model program by MPI.
#include "kinds.hpp"

#if defined(MESHPOST_STUDY_MPI)
#include <mpi.h>

#include <algorithm>
#include <limits>

namespace meshpost::apps {
namespace {

void check(int status, char const* what) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(Kind::device_failed, what, text, "see MPI's own messages");
}

// Memory of GPUs is staged in pinned memory, by this library's copies.
class Mpi : public Exchange {
 public:
  Mpi(std::vector<Part> parts, World const& world)
      : Exchange(std::move(parts), world.first_rank() / world.ranks_per_device()),
        owners_(owners_of(world)) {
    int initialized = 0, rank = 0, size = 0;
    MPI_Initialized(&initialized);
    if (!initialized) {
      check(MPI_Init(nullptr, nullptr), "MPI_Init");
      std::atexit([] { MPI_Finalize(); });
    }
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
    if (static_cast<u32>(rank) != world.process() || static_cast<u32>(size) != world.processes())
      throw Error(Kind::bad_environment, "--against mpi",
                  "this is process " + std::to_string(world.process()) + " of " +
                      std::to_string(world.processes()) + ", and MPI calls it " +
                      std::to_string(rank) + " of " + std::to_string(size),
                  "start the program by mpirun");
  }
  std::string name() const override { return "mpi"; }

 private:
  void carry(std::span<Message const> messages) override {
    requests_.clear();
    // Both sides number the messages by their place in the list, which is the same everywhere.
    stage(messages, true);
    for (std::size_t k = 0; k < messages.size(); ++k) {
      auto const& message = messages[k];
      if (!is_mine(message.to)) continue;
      check(MPI_Irecv(place(message.to, message.target, received_, k), count(message), MPI_BYTE,
                      static_cast<int>(owners_[message.from].process), static_cast<int>(k),
                      MPI_COMM_WORLD, &requests_.emplace_back()),
            "MPI_Irecv");
    }
    for (std::size_t k = 0; k < messages.size(); ++k) {
      auto const& message = messages[k];
      if (!is_mine(message.from)) continue;
      check(MPI_Isend(place(message.from, message.source, sent_, k), count(message), MPI_BYTE,
                      static_cast<int>(owners_[message.to].process), static_cast<int>(k),
                      MPI_COMM_WORLD, &requests_.emplace_back()),
            "MPI_Isend");
    }
    check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
          "MPI_Waitall");
    stage(messages, false);
  }
  void meet() override { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

  static int count(Message const& message) {
    if (message.size > u64{std::numeric_limits<int>::max()})
      throw Error(Kind::bad_argument, "--against mpi",
                  "a message has " + std::to_string(message.size) + " bytes",
                  "choose a smaller problem: MPI counts less than 2^31");
    return static_cast<int>(message.size);
  }

  bool staged(u32 device) const { return !part(device).device->in_host_memory(); }

  // Where MPI finds or leaves the bytes of message k.
  void* place(u32 device, u64 offset, std::vector<Allocation>& stage, std::size_t k) {
    return staged(device) ? stage[k].data() : part(device).memory.data() + offset;
  }

  // Copies what is sent to pinned memory, or what came from there.
  void stage(std::span<Message const> messages, bool out) {
    auto& buffers = out ? sent_ : received_;
    if (out) sent_.resize(std::max(sent_.size(), messages.size()));
    if (out) received_.resize(sent_.size());
    segments_.clear();
    for (std::size_t k = 0; k < messages.size(); ++k) {
      auto const& message = messages[k];
      if (out && is_mine(message.to)) reserve(received_[k], message.to, message.size);
      u32 const device = out ? message.from : message.to;
      if (!is_mine(device) || !staged(device)) continue;
      if (out) reserve(sent_[k], device, message.size);
      auto* const memory = part(device).memory.data() + (out ? message.source : message.target);
      if (out) segments_.push_back({buffers[k].data(), memory, Bytes{message.size}});
      else segments_.push_back({memory, buffers[k].data(), Bytes{message.size}});
    }
    if (!segments_.empty()) copy_batch(segments_).wait();
  }

  void reserve(Allocation& buffer, u32 device, u64 size) {
    if (staged(device) && buffer.size() < size)
      buffer = part(device).device->allocate(Bytes{size}, MemoryKind::pinned);
  }

  std::vector<Owner> owners_;
  std::vector<Allocation> sent_, received_;  // by number of the message; of GPUs
  std::vector<MPI_Request> requests_;
  std::vector<Segment> segments_;
};

}  // namespace

bool has_mpi() { return true; }
std::unique_ptr<Exchange> make_mpi(std::vector<Part> parts, World const& world) {
  return std::make_unique<Mpi>(std::move(parts), world);
}

}  // namespace meshpost::apps

#else

namespace meshpost::apps {

bool has_mpi() { return false; }
std::unique_ptr<Exchange> make_mpi(std::vector<Part>, World const&) { return nullptr; }

}  // namespace meshpost::apps

#endif
