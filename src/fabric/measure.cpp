#include "fabric/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>

#include "base/thread.hpp"
#include "fabric/host_copy.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/fabric/allocate.hpp"

namespace meshpost::fabric {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

TestGround::TestGround(Machine const& machine, Devices devices, Bytes size)
    : machine_(machine), devices_(std::move(devices)), size_(size) {
  for (auto const& info : machine.places)
    if (!info.place.on_host() && !device_at(info.place))
      throw Error(Kind::bad_argument, "calibrate",
                  fmt::format("{} is not among the devices given", info.place.name()),
                  "give the devices that the machine was discovered with");
}

Device* TestGround::device_at(Place const& place) const {
  for (auto const& device : devices_)
    if (device->kind() == place.kind && device->index() == place.number) return device.get();
  return nullptr;
}

std::string TestGround::memory_of(u32 at) const {
  auto const& info = machine_.places.at(at);
  bool const pins = !std::ranges::all_of(devices_, &Device::in_host_memory);
  if (in_host_memory(info.place) && !(pins && info.place.kind == "pinned"))
    return fmt::format("host:{}", info.numa_node);
  return info.place.name();
}

TestGround::Areas& TestGround::areas(u32 at) {
  auto [found, fresh] = areas_.try_emplace(memory_of(at));
  if (!fresh) return found->second;
  auto const& info = machine_.places.at(at);
  for (auto* const area : {&found->second.source, &found->second.target}) {
    *area = allocate_at(info.place, devices_, size_);
    // Not zeros: some devices make fewer bytes of those.
    if (auto* const device = device_at(info.place)) device->fill(area->data(), 0x5a, size_);
    else std::memset(area->data(), 0x5a, size_);
  }
  return found->second;
}

// The source's device if both ends are devices: it writes to a peer as fast as the peer would read.
Device& TestGround::engine_of(Link const& link) const {
  auto* const source = device_at(machine_.places[link.from].place);
  auto* const target = device_at(machine_.places[link.to].place);
  if (source && !source->in_host_memory()) return *source;
  return target && !target->in_host_memory() ? *target : *devices_.front();
}

Stream& TestGround::stream(Link const& link, u32 lane) {
  auto& device = engine_of(link);
  auto& stream = streams_[{device.name(), lane}];
  if (!stream) stream = device.make_stream();
  return *stream;
}

void TestGround::prepare(std::vector<Trip> const& trips) {
  for (u32 lane = 0; lane < trips.size(); ++lane) {
    areas(trips[lane].link->from);
    areas(trips[lane].link->to);
    if (trips[lane].link->mover != Mover::host_threads) stream(*trips[lane].link, lane);
    take(trips[lane], lane, 1);  // the first is slower: page tables, the driver's own buffers
  }
}

void TestGround::take(Trip const& trip, u32 lane, u32 times) {
  auto const* const source =
      areas_.at(memory_of(trip.link->from)).source.as<char>() + trip.offset.value;
  auto* const target = areas_.at(memory_of(trip.link->to)).target.as<char>() + trip.offset.value;
  if (trip.link->mover == Mover::host_threads) {
    for (u32 i = 0; i < times; ++i) ThreadTeam::shared().copy(target, source, trip.bytes);
    return;
  }
  auto& queue = *streams_.at({engine_of(*trip.link).name(), lane});
  for (u32 i = 0; i < times; ++i) queue.copy(target, source, trip.bytes);
  queue.synchronize();
}

double time_alone(TestGround& ground, Link const& link, Bytes bytes, u32 repetitions) {
  TestGround::Trip const trip{&link, bytes, {}};
  ground.prepare({trip});
  std::vector<double> times;
  for (u32 i = 0; i < repetitions; ++i) {
    auto const begin = Clock::now();
    ground.take(trip, 0, 1);
    times.push_back(seconds(Clock::now() - begin));
  }
  return median(std::move(times));
}

double time_together(TestGround& ground, std::vector<TestGround::Trip> const& trips,
                     u32 repetitions) {
  constexpr u32 rounds = 2;  // in a row, so that a late start has less weight
  ground.prepare(trips);
  std::vector<double> times;
  for (u32 i = 0; i < repetitions; ++i) {
    std::atomic<u32> ready{0};
    std::atomic<bool> abandoned{false};
    std::vector<Clock::time_point> begin(trips.size()), end(trips.size());
    std::vector<std::exception_ptr> failure(trips.size());
    std::vector<std::thread> threads;
    threads.reserve(trips.size());
    auto const make_trip = [&](u32 lane) {
      ++ready;
      while (ready < trips.size()) {
        if (abandoned) return;
        std::this_thread::yield();
      }
      begin[lane] = Clock::now();
      try {
        ground.take(trips[lane], lane, rounds);
      } catch (...) {
        failure[lane] = std::current_exception();
      }
      end[lane] = Clock::now();
    };
    std::exception_ptr not_started;
    try {
      for (u32 lane = 0; lane < trips.size(); ++lane)
        threads.push_back(start_thread("measure a link", [&, lane] { make_trip(lane); }));
    } catch (...) {
      not_started = std::current_exception();
      abandoned = true;  // the existing ones would wait for the rest
    }
    for (auto& thread : threads) thread.join();
    if (not_started) std::rethrow_exception(not_started);
    for (auto const& one : failure)
      if (one) std::rethrow_exception(one);
    times.push_back(seconds(*std::ranges::max_element(end) - *std::ranges::min_element(begin)) /
                    rounds);
  }
  return median(std::move(times));
}

}  // namespace meshpost::fabric
