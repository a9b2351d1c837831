#include "poller.hpp"

#include <algorithm>
#include <utility>

#include "system.hpp"

namespace meshpost::launch {

void Poller::watch(int fd, short events, std::function<void()> then) {
  all_.push_back({fd, events, 0});
  calls_.push_back(std::move(then));
}

void Poller::wait(std::optional<Clock::time_point> until) {
  int milliseconds = -1;
  if (until) {
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count();
    milliseconds = static_cast<int>(std::clamp<long long>(left, 0, 1'000'000));
  }
  int const ready = ::poll(all_.data(), all_.size(), milliseconds);
  if (ready < 0 && errno != EINTR) throw system_error("wait for the processes: poll", "");
  for (std::size_t i = 0; ready > 0 && i < all_.size(); ++i)
    if (all_[i].revents != 0) calls_[i]();
  all_.clear();
  calls_.clear();
}

}  // namespace meshpost::launch
