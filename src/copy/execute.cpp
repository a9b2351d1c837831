#include "copy/execute.hpp"

#include <bit>
#include <chrono>
#include <map>
#include <mutex>
#include <tuple>

#include "copy/chain.hpp"
#include "copy/devices.hpp"
#include "copy/measured.hpp"
#include "copy/together.hpp"
#include "copy/workers.hpp"
#include "fabric/numa.hpp"

namespace meshpost::copying {
namespace {

using Clock = std::chrono::steady_clock;

std::optional<u32> place_of(Machine const& machine, Location const& where, void const* pointer) {
  if (where.device && !where.on_host)
    return machine.find({std::string(where.device->kind()), where.device->index()});
  char const* const kind = where.page_locked ? "pinned" : "pageable";
  if (auto const node = fabric::node_of_memory(pointer))
    if (auto const found = machine.find({kind, *node})) return found;
  for (u32 i = 0; i < machine.places.size(); ++i)
    if (machine.places[i].place.kind == kind) return i;
  return std::nullopt;
}

// Sizes that differ by less than a quarter share a plan; chains claim the chunks that there are.
u64 size_class(u64 size) {
  int const shift = std::max(0, static_cast<int>(std::bit_width(size)) - 3);
  return size >> shift << shift;
}

struct Running {
  std::shared_ptr<Plan const> plan;
  Request request;
  Share share;
  std::atomic<u64> left;
  Clock::time_point begin = Clock::now();
  std::shared_ptr<HostState> state = std::make_shared<HostState>();
  std::mutex mutex{};
  std::optional<Error> error{};
  bool abandoned = false;  // written before the last one leaves

  void lead(Chain const& chain) {
    HostState attempt;  // keeps the exception
    attempt.run([&] { run_chain(*plan->machine, chain, request, share); });
    leave(attempt.error());
  }
  void leave(std::optional<Error> const& failed) {
    if (failed) {
      std::scoped_lock const lock(mutex);
      if (!error) error = failed;
    }
    // The last one: all bytes have arrived. Its acquire sees the others' earlier stores.
    if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    auto const seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    state->run([&] {
      if (error) throw Error(*error);
      if (!abandoned) remember(plan->name, request.bytes(), seconds);
    });
  }
};

}  // namespace

std::shared_ptr<Plan const> plan_for(Request const& request) {
  if (request.bytes() < least_routed || !request.plain() || request.by_host()) return nullptr;
  auto const& machine = known_machine();
  auto const from = place_of(machine, request.from, request.rows.source);
  auto const to = place_of(machine, request.to, request.rows.target);
  if (!from || !to) return nullptr;  // a device that copies don't know: its own engine
  u64 const size = size_class(request.bytes());
  static std::mutex mutex;
  static auto* const plans =
      new std::map<std::tuple<Machine const*, u32, u32, u64>, std::shared_ptr<Plan const>>;
  std::scoped_lock const lock(mutex);
  auto const [at, first] = plans->try_emplace({&machine, *from, *to, size}, nullptr);
  if (!first) return at->second;
  try {
    Plan plan{
        &machine,
        plan_route(machine, machine.places[*from].place, machine.places[*to].place, Bytes{size}),
        {}};
    plan.name = describe(machine, plan.route);
    bool const direct = plan.route.chains.size() == 1 && plan.route.chains[0].links.size() == 1;
    if (!direct) at->second = std::make_shared<Plan const>(std::move(plan));
  } catch (Error const&) {
    plans->erase(at);
    throw;
  }
  return at->second;
}

StatePtr execute(std::shared_ptr<Plan const> const& plan, Request const& request) {
  auto const& chains = plan->route.chains;
  auto running =
      std::shared_ptr<Running>(new Running{plan, request, Share(request.bytes()), {chains.size()}});
  u64 led = 0;
  try {
    for (; led < chains.size(); ++led)
      movers().run([running, &chain = chains[led]] { running->lead(chain); });
  } catch (...) {  // nothing may be in progress
    running->share.stop();
    running->abandoned = true;
    for (; led < chains.size(); ++led) running->leave({});
    wait_quietly({running->state});
    throw;
  }
  return running->state;
}

}  // namespace meshpost::copying
