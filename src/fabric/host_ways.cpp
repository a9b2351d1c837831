#include "fabric/host_ways.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>

#include "fabric/host_copy.hpp"
#include "fabric/machine_cache.hpp"

namespace meshpost::fabric {
namespace {

constexpr u64 one_mib = u64{1} << 20;

// memcpy_one and memcpy_shares, the C library's own choice. Another way must be clearly faster, and
// even more so for sizes far beyond the measured ones.
constexpr u32 plain_ways = 2;

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

double seconds_of(ThreadTeam& team, HostWay way, void* target, void const* source, u64 size) {
  using Clock = std::chrono::steady_clock;
  auto const begin = Clock::now();
  team.copy(target, source, Bytes{size}, way);
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The rate of the best round, or of the best quarter of many. Disturbances make a copy slower, but
// a short one may be lucky with the contents of the caches.
HostRates measure_size(ThreadTeam& team, void* target, void const* source, u64 size) {
  constexpr double far_behind = 1.6;  // times the best
  bool const small = size <= 16 * one_mib;
  u32 const rounds = small ? 7 : 6, enough = small ? 3 : 2;
  std::array<std::vector<double>, host_ways> times;
  std::array<double, host_ways> least{};
  least.fill(std::numeric_limits<double>::infinity());
  for (u32 round = 0; round < rounds; ++round) {
    double const best = *std::ranges::min_element(least);
    for (u32 way = 0; way < host_ways; ++way) {
      if (round >= enough && least[way] > far_behind * best) continue;
      // The way before has left its data in the caches. This copy removes that effect.
      if (small) team.copy(target, source, Bytes{size}, static_cast<HostWay>(way));
      times[way].push_back(seconds_of(team, static_cast<HostWay>(way), target, source, size));
      least[way] = std::min(least[way], times[way].back());
    }
  }
  HostRates measured{Bytes{size}, {}};
  for (u32 way = 0; way < host_ways; ++way) {
    auto& all = times[way];
    std::ranges::sort(all);
    measured.rates[way] =
        static_cast<double>(size) / std::max(all[small ? all.size() / 4 : 0], 1e-9);
  }
  return measured;
}

std::atomic<std::vector<HostRates> const*> rates_in_use{nullptr};

// Measuring takes a second, which no copy may take. So this uses the rates that were kept when this
// machine was measured, or none.
void use_kept_rates() {
  if (auto const kept = kept_host_rates(host_file())) use_host_rates(*kept);
}

}  // namespace

HostWay best_way(std::vector<HostRates> const& measured, Bytes size, Cores cores) {
  if (size < one_mib) return HostWay::memcpy_one;
  HostRates const* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (auto const& one : measured) {
    if (one.size == 0) continue;
    double const away =
        std::abs(std::log(static_cast<double>(size) / static_cast<double>(one.size)));
    if (away < least) nearest = &one, least = away;
  }
  if (!nearest) return cores == Cores::one ? HostWay::memcpy_one : HostWay::memcpy_shares;
  auto rates = nearest->rates;
  for (u32 way = 0; way < host_ways; ++way)
    if (cores == Cores::one && !by_one_thread(static_cast<HostWay>(way))) rates[way] = 0;
  auto const fastest = [&](auto begin, auto end) {
    return static_cast<u32>(std::max_element(begin, end) - rates.begin());
  };
  u32 const plain = fastest(rates.begin(), rates.begin() + plain_ways);
  u32 const other = fastest(rates.begin() + plain_ways, rates.end());
  double const clearly = size > 2 * nearest->size ? 1.25 : 1.1;
  return static_cast<HostWay>(rates[other] > clearly * rates[plain] ? other : plain);
}

std::vector<HostRates> measure_host_ways(ThreadTeam& team, Bytes most) {
  u64 const free_now = static_cast<u64>(sysconf(_SC_AVPHYS_PAGES)) * u64(sysconf(_SC_PAGESIZE));
  u64 largest = one_mib;
  while (largest * 4 <= std::min<u64>({most, 256 * one_mib, free_now / 32})) largest *= 4;
  auto const area = [&] {
    std::unique_ptr<void, FreeMemory> memory(std::aligned_alloc(4096, largest));
    if (memory) std::memset(memory.get(), 0x5a, largest);
    return memory;
  };
  auto const source = area(), target = area();
  std::vector<HostRates> measured;
  if (!source || !target) return measured;
  for (u64 size = one_mib; size <= largest; size *= 4)
    measured.push_back(measure_size(team, target.get(), source.get(), size));
  return measured;
}

void use_host_rates(std::vector<HostRates> const& measured) {
  if (measured.empty()) return;
  // Never freed: a reader may still use rates that were replaced.
  static std::mutex mutex;
  static auto* const all = new std::deque<std::vector<HostRates>>;
  std::scoped_lock const lock(mutex);
  rates_in_use.store(&all->emplace_back(measured), std::memory_order_release);
}

HostWay host_way(Bytes size, Cores cores) {
  static std::vector<HostRates> const nothing;
  if (size < one_mib) return HostWay::memcpy_one;
  auto const* rates = rates_in_use.load(std::memory_order_acquire);
  static std::atomic<bool> asked{false};
  if (!rates && !asked.load(std::memory_order_relaxed) && !asked.exchange(true)) {
    try {
      use_kept_rates();
    } catch (std::exception const&) {
      return best_way(nothing, size, cores);  // a copy does not fail for that reason
    }
    rates = rates_in_use.load(std::memory_order_acquire);
  }
  return best_way(rates ? *rates : nothing, size, cores);
}

}  // namespace meshpost::fabric
