#pragma once
// Random exchanges on streams, and what must come of them.
#include <meshpost/meshpost.hpp>

#include <chrono>
#include <cstring>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "support/worlds.hpp"

namespace meshpost::test {

enum class ExchangeReach { one_device, several_devices, apart };

inline std::string reach_name(testing::TestParamInfo<ExchangeReach> const& info) {
  constexpr char const* names[] = {"one_device", "several_devices", "apart"};
  return names[static_cast<u32>(info.param)];
}

inline WorldOptions options_for(ExchangeReach reach,
                                std::chrono::milliseconds deadline = std::chrono::seconds(15)) {
  bool const one = reach == ExchangeReach::one_device;
  auto wanted = test::options(
      1, test::devices(one ? test::Spread::one_device : test::Spread::several_devices));
  wanted.apart = reach == ExchangeReach::apart;
  wanted.deadline = deadline;
  return wanted;
}

/// An element of any size.
template <u64 size>
struct Blob {
  unsigned char bytes[size];
  bool operator==(Blob const&) const = default;
};

template <class T>
T element_of(u64 index, u64 step) {
  u64 const value = mixed(index, step);
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value % 10000) / 7;
  } else {
    T element{};
    for (u64 at = 0; at < sizeof(T); ++at)
      reinterpret_cast<unsigned char*>(&element)[at] =
          static_cast<unsigned char>(mixed(value, at / 8) >> (at % 8 * 8));
    return element;
  }
}

/// An array in a device's memory, `shift` elements behind the beginning of its allocation.
template <class T>
class PartArray {
 public:
  PartArray(Device& device, std::vector<T> const& values, u64 shift = 0)
      : device_(&device),
        memory_(
            device.allocate(Bytes{(values.size() + shift + 1) * sizeof(T)}, MemoryKind::device)),
        shift_(shift),
        count_(values.size()) {
    write(values);
  }
  std::span<T> span() const { return {memory_.as<T>() + shift_, count_}; }
  void write(std::vector<T> const& values) {
    device_->write(span().data(), values.data(), Bytes{count_ * sizeof(T)});
  }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    device_->read(values.data(), span().data(), Bytes{count_ * sizeof(T)});
    return values;
  }

 private:
  Device* device_;
  Allocation memory_;
  u64 shift_, count_;
};

/// A stream on each device of this process.
inline std::vector<StreamEndpoint> streams_of(World const& world) {
  std::vector<StreamEndpoint> streams;
  for (u32 i = 0; i < world.devices().size(); ++i) streams.emplace_back(world, i);
  return streams;
}

template <class T>
StreamExchange<T> exchange_on(World& world, Plan const& plan,
                              std::vector<StreamEndpoint> const& streams) {
  return StreamExchange<T>(world, plan, {streams.begin(), streams.end()});
}

/// The memory of a part: own elements of a step, and nothing in its halo; or the other way.
template <class T>
std::vector<T> part_of(Plan const& plan, u32 part, u64 step, bool own, bool halo) {
  auto const& one = plan.of(part);
  std::vector<T> values(one.size());
  for (u64 place = 0; own && place < one.own; ++place)
    values[place] = element_of<T>(plan.distribution().index_of(part, place), step);
  for (u64 k = 0; halo && k < one.halo.size(); ++k)
    values[one.own + k] = element_of<T>(one.halo[k], step);
  return values;
}

/// Several steps are queued, in a random order of devices, and seldom waited for. Returns what is
/// wrong. Collective.
template <class T>
std::string wrong_stream_steps(Plan const& plan, StreamExchange<T> const& exchange, World& world,
                               std::vector<StreamEndpoint>& streams, u64 seed) {
  constexpr u32 steps = 5;
  std::mt19937_64 random(seed + world.process());
  auto const devices = static_cast<u32>(streams.size());
  std::vector<std::vector<PartArray<T>>> arrays(devices);
  for (u32 step = 0; step < steps; ++step)
    for (u32 i = 0; i < devices; ++i)
      arrays[i].emplace_back(*world.devices()[i],
                             part_of<T>(plan, plan.first_part() + i, seed + step, true, false),
                             random() % 3);
  std::vector<u32> next(devices);
  for (u32 left = devices * steps; left > 0; --left) {
    u32 i = static_cast<u32>(random() % devices);
    while (next[i] == steps) i = (i + 1) % devices;
    auto const array = arrays[i][next[i]++].span();
    exchange.start(i, array);
    exchange.finish(i, array);
    if (random() % 8 == 0) streams[i].stream().call([] { std::this_thread::yield(); });
  }
  for (auto& stream : streams) stream.synchronize();
  std::string wrong;
  for (u32 i = 0; i < devices; ++i)
    for (u32 step = 0; step < steps; ++step)
      if (arrays[i][step].read() !=
          part_of<T>(plan, plan.first_part() + i, seed + step, true, true))
        wrong += "device " + std::to_string(i) + " had another halo in step " +
                 std::to_string(step) + "\n";
  return wrong;
}

template <class T>
T combined(StreamCombine combine, T old, T come) {
  if (combine == StreamCombine::replace) return come;
  if constexpr (std::is_arithmetic_v<T>) {
    if (combine == StreamCombine::sum) {
      if constexpr (std::is_integral_v<T>)  // which wrap
        return static_cast<T>(static_cast<u64>(old) + static_cast<u64>(come));
      else return old + come;
    }
    return (combine == StreamCombine::minimum) == (come < old) ? come : old;
  }
  return old;
}

/// Halos go to their owners, who combine them in the order of the parts. The values of halos are
/// those of the other part, which anybody can compute. Collective.
template <class T>
std::string wrong_stream_reverse(Plan const& plan, World& world,
                                 std::vector<StreamEndpoint>& streams, u64 seed,
                                 StreamCombine combine) {
  auto const devices = static_cast<u32>(streams.size());
  auto const back = exchange_on<T>(world, plan.reverse(), streams);
  auto const sent_by = [&](u32 part, u64 index) { return element_of<T>(mixed(index, part), seed); };
  std::vector<PartArray<T>> sources, targets;
  for (u32 i = 0; i < devices; ++i) {
    u32 const part = plan.first_part() + i;
    auto const& one = plan.of(part);
    std::vector<T> values(one.size());
    for (u64 k = 0; k < one.halo.size(); ++k) values[one.own + k] = sent_by(part, one.halo[k]);
    sources.emplace_back(*world.devices()[i], values);
    targets.emplace_back(*world.devices()[i], part_of<T>(plan, part, seed, true, false));
  }
  constexpr u32 steps = 3;
  for (u32 step = 0; step < steps; ++step) {
    for (u32 i = 0; i < devices; ++i) back.start(i, sources[i].span());
    for (u32 i = 0; i < devices; ++i) back.finish(i, targets[i].span(), combine);
  }
  for (auto& stream : streams) stream.synchronize();
  std::string wrong;
  for (u32 i = 0; i < devices; ++i) {
    u32 const part = plan.first_part() + i;
    auto const& one = plan.of(part);
    auto expected = part_of<T>(plan, part, seed, true, false);
    for (u32 step = 0; step < steps; ++step)
      for (auto const& entry : one.sends)
        for (u64 k = 0; k < entry.count; ++k) {
          u64 const place = one.sent[entry.offset + k];
          auto const come = sent_by(entry.part, plan.distribution().index_of(part, place));
          expected[place] = combined(combine, expected[place], come);
        }
    if (targets[i].read() != expected)
      wrong += "device " + std::to_string(i) + " combined something else\n";
  }
  free_exchange(world, back);
  return wrong;
}

}  // namespace meshpost::test
