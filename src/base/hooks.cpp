#include "meshpost/base/hooks.hpp"

#include <array>
#include <utility>

namespace meshpost::hooks {
namespace {
Hook& current() {
  static Hook hook;
  return hook;
}
}  // namespace

char const* name(Step step) {
  static constexpr std::array<char const*, static_cast<unsigned>(Step::count)> names = {
      "put_copy",     "notify_raise",   "lane_send",       "lane_take",  "wait_begin",
      "wait_consume", "barrier_arrive", "barrier_release", "rank_start", "rank_end"};
  return names.at(static_cast<unsigned>(step));
}

void install(Hook hook) {
  current() = std::move(hook);
  installed.store(static_cast<bool>(current()), std::memory_order_release);
}

Action ask(Step step, unsigned rank) {
  return installed.load(std::memory_order_acquire) ? current()(step, rank) : Action::proceed;
}

}  // namespace meshpost::hooks
