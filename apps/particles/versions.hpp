#pragma once
// Both versions over one World, as a case study.
#include <cstring>
#include <optional>

#include "common/enqueue.hpp"
#include "common/gather.hpp"
#include "common/study/study.hpp"
#include "host_lists.hpp"
#include "kernel.hpp"
#include "troubles.hpp"

namespace particles {

/// Threads that `enqueue` starts at most for so many chunks.
inline u64 plain_threads_for(u64 chunks) {
  u64 const each = meshpost::apps::plain_threads;
  return std::min<u64>((chunks * lanes + each - 1) / each * each, 2048 * each);
}

template <class Real>
class Versions : public meshpost::apps::Study {
 public:
  /// Collective. \throws Error(out_of_memory)
  Versions(meshpost::World& world, Problem const& problem)
      : world_(world),
        problem_(problem),
        shape_{problem.segments, world.device_count(), world.ranks_per_device(), problem.chunks},
        list_bytes_(List<Real>::size(problem.chunks)),
        on_gpus_(meshpost::apps::all_on_gpus(world)),
        start_(initial_state<Real>(problem)) {
    auto const extents = parts(shape_, list_bytes_);
    using meshpost::Tags;
    for (u32 k = 0; k < 2; ++k)
      kernel_.lists[k] = world.window<std::byte>(extents, Tags{1}, k == 0 ? "lists 0" : "lists 1");
    kernel_.troubles = world.window<Trouble>(gpu_threads, Tags{1}, "troubles");
    kernel_.shape = shape_;
    kernel_.model = problem.model<Real>();
    kernel_.at_once = segments_at_once();
    for (u32 k = 0; k < world.devices().size(); ++k) add_device(k);
    if (world.processes() > 1) job_.emplace();
  }

  u32 owners() const {
    u32 all = 0;
    for (u32 d = 0; d < shape_.devices; ++d) all += shape_.owners(d);
    return all;
  }
  State const& start() const { return start_; }

  void reset() override {
    for (u32 k = 0; k < devices_.size(); ++k) {
      auto const image = lists_of<Real>(problem_, start_, devices_[k].own);
      write(k, kernel_.lists[0], image);
      write(k, kernel_.lists[1], poisoned_lists<Real>(problem_, devices_[k].own));
      std::vector<std::byte> const bad(devices_[k].content.size().value, std::byte{0xff});
      meshpost::copy(devices_[k].content.data(), bad.data(), devices_[k].content.size());
      std::vector<std::byte> const zero(devices_[k].troubles.size().value);
      meshpost::copy(devices_[k].troubles.data(), zero.data(), devices_[k].troubles.size());
    }
    std::vector<Trouble> const none(gpu_threads);
    for (u32 r = first_rank(); r < end_rank(); ++r)
      kernel_.troubles.write(meshpost::RankId{r}, 0, none);
    done_ = 0;
    result_in_ = 0;  // the other version has one set of lists, and may not call step() again
  }

  void run_kernel(meshpost::Launch const& launch) override { run_steps(launch, problem_.steps); }
  /// The next `steps` of the one kernel. \throws Error(bad_argument) if a particle went too far, or
  /// a segment is full
  void run_steps(meshpost::Launch launch, u32 steps) {
    kernel_.first_step = done_;
    kernel_.steps = steps;
    launch.threads = {on_gpus_ ? static_cast<u32>(gpu_threads) : 1u, 1, 1};
    launch.scratch = meshpost::Bytes{Content<Real>::size(kernel_.at_once + 2, problem_.chunks)};
    try {
      world_.run(kernel_, launch);
    } catch (meshpost::Error const& error) {
      if (error.kind() != meshpost::Kind::kernel_failed) throw;
      explain(kernel_troubles());
      throw;
    }
    done_ += steps;
    result_in_ = done_ % 2;
  }

  void step(meshpost::apps::Exchange& exchange, u32 number) override {
    for (u32 k = 0; k < devices_.size(); ++k) {
      auto const& part = exchange.parts()[k];
      auto const state = on_device(k, number);
      u64 const chunks = u64{state.own.size()} * problem_.chunks;
      meshpost::apps::enqueue(*part.device, *part.stream,
                              (chunks + 2 * halo * problem_.chunks) * lanes, Collect<Real>{state});
      meshpost::apps::enqueue(*part.device, *part.stream, chunks * lanes, Move<Real>{state});
    }
    exchange.run(messages_between());
  }

  u32 steps() const override { return problem_.steps; }

  std::vector<std::span<std::byte>> memories() const override {
    std::vector<std::span<std::byte>> all;
    all.reserve(devices_.size());
    for (auto const& device : devices_) all.push_back(device.lists);
    return all;
  }

  std::vector<std::byte> result() override {
    explain(plain_troubles());
    if (world_.process() != 0) return {};
    auto const state = read_state();
    auto const bytes = std::as_bytes(std::span(state));
    return {bytes.begin(), bytes.end()};
  }

 private:
  struct OnDevice {
    Range own;
    std::span<std::byte> lists;  // of the first window: those that messages are for
    meshpost::Allocation content, troubles;
  };

  u32 first_rank() const { return world_.first_rank(); }
  u32 end_rank() const {
    return first_rank() + static_cast<u32>(world_.devices().size()) * shape_.ranks_per_device;
  }

  // Contents of how many segments a rank keeps at once. Their memory is limited, so ranks with many
  // segments take several passes, which are equally long.
  u32 segments_at_once() const {
    u32 most = 1;
    for (u32 r = 0; r < shape_.devices * shape_.ranks_per_device; ++r)
      most = std::max(most, shape_.of_rank(r).size());
    // 48 KiB is the shared memory of each block of every GPU. The other is part of a core's cache.
    u64 const limit = on_gpus_ ? 48 << 10 : 256 << 10;
    u32 fit = 1;
    while (fit < most && Content<Real>::size(fit + 3, problem_.chunks) <= limit) ++fit;
    u32 const passes = (most + fit - 1) / fit;
    return (most + passes - 1) / passes;
  }

  void add_device(u32 k) {
    using namespace meshpost;
    auto& device = *world_.devices()[k];
    u32 const rank = first_rank() + k * shape_.ranks_per_device;
    Range const own = shape_.of_device(rank / shape_.ranks_per_device);
    u64 const lists = own.size() + 2 * halo, chunks = lists * problem_.chunks;
    auto const begin = kernel_.lists[0].part(RankId{rank});
    devices_.push_back(
        {own,
         {begin.data(), lists * list_bytes_},
         device.allocate(Bytes{Content<Real>::size(own.size() + 2, problem_.chunks)},
                         MemoryKind::device),
         device.allocate(Bytes{plain_threads_for(chunks) * sizeof(Trouble)}, MemoryKind::device)});
  }

  DeviceState<Real> on_device(u32 k, u32 step) const {
    auto const& device = devices_[k];
    return {{device.lists.data(), problem_.chunks},
            {device.content.template as<std::byte>(), device.own.size() + 2, problem_.chunks},
            device.troubles.template as<Trouble>(),
            device.own,
            kernel_.model,
            step};
  }

  // The host does not know how many particles there are, so whole lists travel.
  std::vector<meshpost::apps::Message> messages_between() const {
    std::vector<meshpost::apps::Message> all;
    for (u32 d = 0; d + 1 < shape_.devices; ++d) {
      u64 const lower = shape_.of_device(d).size();
      all.push_back({d, d + 1, lower * list_bytes_, 0, halo * list_bytes_});
      all.push_back(
          {d + 1, d, halo * list_bytes_, (lower + halo) * list_bytes_, halo * list_bytes_});
    }
    return all;
  }

  void write(u32 k, meshpost::Window<std::byte> const& window,
             std::vector<std::byte> const& image) const {
    u32 const first = first_rank() + k * shape_.ranks_per_device;
    for (u32 r = first; r < first + shape_.ranks_per_device; ++r) {
      Range const own = shape_.of_rank(r);
      if (own.size() == 0) break;
      window.write(meshpost::RankId{r}, 0,
                   std::span(image).subspan((own.begin - devices_[k].own.begin) * list_bytes_,
                                            (own.size() + 2 * halo) * list_bytes_));
    }
  }

  // All particles by number. \throws Error(kernel_failed) if one is missing or there twice
  State read_state() const {
    State state(problem_.particles, Row{0, 0, 0, 0, -1});
    u64 found = 0;
    for (u32 r = 0; r < shape_.devices * shape_.ranks_per_device; ++r) {
      Range const own = shape_.of_rank(r);
      std::vector<std::byte> lists(own.size() * list_bytes_);
      if (lists.empty()) continue;
      kernel_.lists[result_in_].read(meshpost::RankId{r}, halo * list_bytes_,
                                     std::span<std::byte>(lists));
      for (u32 place = 0; place < own.size(); ++place)
        found +=
            read_list(Lists<Real>{lists.data(), problem_.chunks}[place], own.begin + place, state);
    }
    if (found != problem_.particles)
      throw meshpost::Error(meshpost::Kind::kernel_failed, "read the result",
                            "there are " + std::to_string(found) + " particles, and " +
                                std::to_string(problem_.particles) + " at the beginning",
                            "this is a bug of the program");
    return state;
  }

  std::vector<Trouble> kernel_troubles() const {
    std::vector<Trouble> all;
    for (u32 r = first_rank(); r < end_rank(); ++r)
      for (auto const& one : kernel_.troubles.read(meshpost::RankId{r})) all.push_back(one);
    return all;
  }
  std::vector<Trouble> plain_troubles() const {
    std::vector<Trouble> all;
    for (auto const& device : devices_) {
      std::vector<Trouble> some(device.troubles.size().value / sizeof(Trouble));
      meshpost::copy(some.data(), device.troubles.data(), device.troubles.size());
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

  // Throws the first of them, of any process; in all processes the same. Collective.
  void explain(std::vector<Trouble> const& troubles) {
    Trouble first{};
    for (auto const& one : troubles) first = earlier(first, one);
    if (job_) {
      std::string const bytes(reinterpret_cast<char const*>(&first), sizeof first);
      for (auto const& other : meshpost::gather(*job_, bytes)) {
        Trouble one{};
        std::memcpy(&one, other.data(), sizeof one);
        first = earlier(first, one);
      }
    }
    throw_for(first, problem_, static_cast<double>(kernel_.model.reach));
  }

  meshpost::World& world_;
  Problem problem_;
  Shape shape_;
  u64 list_bytes_;
  bool on_gpus_;
  State start_;
  Simulation<Real> kernel_{};
  std::vector<OnDevice> devices_;  // of this process
  std::optional<meshpost::JobMemory> job_;
  u32 done_ = 0, result_in_ = 0;
};

}  // namespace particles
