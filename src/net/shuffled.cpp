#include "net/shuffled.hpp"

#include <utility>

namespace meshpost::net {

class Shuffled::Keeper final : public Events {
 public:
  explicit Keeper(Shuffled& self) : self_(self) {}

  void on_message(u32 peer, std::span<char const> bytes) override {
    keep([peer, copy = std::string(bytes.begin(), bytes.end())](Events& events) {
      events.on_message(peer, copy);
    });
  }
  void on_data(u32 peer, u32 data) override {
    keep([peer, data](Events& events) { events.on_data(peer, data); });
  }
  void on_done(u64 cookie) override {
    keep([cookie](Events& events) { events.on_done(cookie); });
  }
  // No event may come after it. So it is kept longer than any earlier one.
  void on_lost(u32 peer, std::string const& why) override {
    self_.kept_.emplace(self_.polls_ + self_.most_polls_ + 1,
                        [peer, why](Events& events) { events.on_lost(peer, why); });
  }

 private:
  void keep(Tell tell) {
    auto const delay = self_.random_() % (self_.most_polls_ + u64{1});
    self_.kept_.emplace(self_.polls_ + delay, std::move(tell));
  }
  Shuffled& self_;
};

Shuffled::Shuffled(std::unique_ptr<Engine> engine, u64 seed, u32 most_polls)
    : Wrapper(std::move(engine)), random_(seed), most_polls_(most_polls) {}
Shuffled::~Shuffled() = default;

std::string Shuffled::name() const { return "shuffled " + Wrapper::name(); }

bool Shuffled::poll(Events& events) {
  Keeper keeper(*this);
  bool const happened = Wrapper::poll(keeper);
  bool const some = !kept_.empty();
  while (!kept_.empty() && kept_.begin()->first <= polls_)
    kept_.extract(kept_.begin()).mapped()(events);
  ++polls_;
  return happened || some;
}

}  // namespace meshpost::net
