#include "exchange.hpp"

#include <algorithm>
#include <chrono>

#include "common/command.hpp"
#include "common/gather.hpp"
#include "kinds.hpp"

namespace meshpost::apps {
namespace {

// Copies by this library, between devices of one process.
class Copies : public Exchange {
 public:
  explicit Copies(std::vector<Part> parts) : Exchange(std::move(parts), 0) {}
  std::string name() const override { return "copies"; }

 private:
  void carry(std::span<Message const> messages) override {
    segments_.clear();
    for (auto const& message : messages)
      segments_.push_back({part(message.to).memory.data() + message.target,
                           part(message.from).memory.data() + message.source, Bytes{message.size}});
    copy_batch(segments_).wait();
  }
  void meet() override {}

  std::vector<Segment> segments_;  // kept for its memory
};

// The same between processes: the sender copies. All meet before that, because a target may be in
// use until its process is here, and behind it.
class JobCopies : public Exchange {
 public:
  JobCopies(std::vector<Part> parts, World const& world)
      : Exchange(std::move(parts), world.first_rank() / world.ranks_per_device()),
        owners_(owners_of(world)) {
    u32 most = 0;
    for (auto const& owner : owners_) most = std::max(most, owner.number + 1);
    for (u32 k = 0; k < most; ++k) {
      bool const mine = k < this->parts().size();
      auto const memory = mine ? this->parts()[k].memory : std::span<std::byte>{};
      exposed_.push_back(
          job_.expose(memory.data(), Bytes{memory.size()}, "devices " + std::to_string(k)));
    }
  }
  std::string name() const override { return "copies"; }

 private:
  void carry(std::span<Message const> messages) override {
    puts_.clear();
    for (auto const& message : messages) {
      if (!is_mine(message.from)) continue;
      auto const owner = owners_[message.to];
      puts_.push_back(
          {exposed_[owner.number].at(owner.process, message.target, Bytes{message.size}),
           part(message.from).memory.data() + message.source});
    }
    meet();
    put_batch(puts_).wait();
    meet();
  }
  void meet() override { job_.meet("exchange"); }

  std::vector<Owner> owners_;  // by device
  JobMemory job_;
  std::vector<Exposed> exposed_;  // by number within the process
  std::vector<RemotePut> puts_;
};

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<Owner> owners_of(World const& world) {
  std::vector<u32> counts;
  {
    JobMemory job;
    for (auto const& text : gather(job, std::to_string(world.devices().size())))
      counts.push_back(static_cast<u32>(std::stoul(text)));
  }
  std::vector<Owner> owners;
  for (u32 process = 0; process < counts.size(); ++process)
    for (u32 number = 0; number < counts[process]; ++number) owners.push_back({process, number});
  return owners;
}

void Exchange::prepare(u32 steps, std::function<void(u32)> body) {
  steps_ = steps;
  body_ = std::move(body);
  do_prepare();
}

double Exchange::play() {
  communication_ = 0;
  meet();
  double const begin = now();
  for (u32 step = 0; step < steps_; ++step) body_(step);
  synchronize();
  meet();
  return now() - begin;
}

void Exchange::run(std::span<Message const> messages) {
  if (messages.empty()) return;  // in all processes
  if (on_streams()) {
    carry(messages);
    return;
  }
  synchronize();
  double const begin = now();
  carry(messages);
  communication_ += now() - begin;
}

void Exchange::barrier() {
  if (on_streams()) {
    do_barrier();
    return;
  }
  synchronize();
  double const begin = now();
  meet();
  communication_ += now() - begin;
}

void Exchange::synchronize() {
  for (auto const& part : parts_) part.stream->synchronize();
}

namespace {

bool whole_gpus(World const& world) {
  return world.processes() == 1 && std::ranges::all_of(world.devices(), [](auto const& device) {
           return device->kind() == "cuda" && !device->whole();
         });
}

}  // namespace

std::unique_ptr<Exchange> make_exchange(std::string const& kind, World& world,
                                        std::vector<std::span<std::byte>> const& memories) {
  std::string const option = "--against " + kind;
  bool const nccl = kind == "nccl" || (kind == "auto" && has_nccl() && whole_gpus(world));
  std::vector<Part> parts;
  for (std::size_t d = 0; d < world.devices().size(); ++d)
    parts.push_back({world.devices()[d], world.devices()[d]->make_stream(), memories[d]});
  if (nccl) {
    if (!has_nccl())
      refuse(option, "this program was built without NCCL",
             "name copies, or build it where nccl.h is");
    if (!whole_gpus(world))
      refuse(option, "NCCL needs whole GPUs of one process", "name copies, or other --devices");
    return make_nccl(std::move(parts));
  }
  if (kind == "mpi") {
    if (!has_mpi())
      refuse(option, "this program was built without MPI",
             "install libopenmpi-dev and build it again");
    return make_mpi(std::move(parts), world);
  }
  if (kind != "copies" && kind != "auto")
    refuse(option, "there is no such kind of communication",
           "name auto, copies, mpi, nccl or none");
  if (world.processes() > 1) return std::make_unique<JobCopies>(std::move(parts), world);
  return std::make_unique<Copies>(std::move(parts));
}

}  // namespace meshpost::apps
