#include "net/faulty.hpp"

#include <array>
#include <thread>
#include <utility>

#include "meshpost/base/error.hpp"
#include "meshpost/base/events.hpp"

namespace meshpost::net {
namespace {

constexpr std::array<std::pair<char const*, Faulty::Fault>, 6> names{
    {{"flip", Faulty::Fault::flip},
     {"truncate", Faulty::Fault::truncate},
     {"duplicate", Faulty::Fault::duplicate},
     {"drop", Faulty::Fault::drop},
     {"lose", Faulty::Fault::lose},
     {"hang", Faulty::Fault::hang}}};

}  // namespace

Faulty::Fault fault_from(std::string const& name) {
  for (auto const& [known, fault] : names)
    if (name == known) return fault;
  throw Error(Kind::bad_environment, "network engine faulty:" + name, "there is no such fault",
              "take flip, truncate, duplicate, drop, lose or hang, as in faulty:flip:7:ofi");
}

// Tests wait for these words.
void Faulty::hang() {
  warn("the engine 'faulty' hangs, as it was told to");
  std::this_thread::sleep_for(hangs);
}

class Faulty::Filter final : public Events {
 public:
  Filter(Faulty& self, Events& events) : self_(self), events_(events) {}

  void on_message(u32 peer, std::span<char const> bytes) override {
    if (self_.lost_[peer]) return;
    if (self_.before_-- != 0) return events_.on_message(peer, bytes);
    std::string copy(bytes.begin(), bytes.end());
    switch (self_.fault_) {
      case Fault::flip: {
        u64 const bit = self_.random_() % (copy.size() * 8);
        copy[bit / 8] = static_cast<char>(copy[bit / 8] ^ 1 << bit % 8);
        return events_.on_message(peer, copy);
      }
      case Fault::truncate:
        copy.resize(self_.random_() % copy.size());
        return events_.on_message(peer, copy);
      case Fault::duplicate:
        events_.on_message(peer, bytes);
        return events_.on_message(peer, bytes);
      case Fault::drop: return;
      case Fault::lose:
        self_.lost_[peer] = true;
        return events_.on_lost(peer, "the engine 'faulty' lost it, as it was told to");
      case Fault::hang: self_.hang(); return events_.on_message(peer, bytes);
    }
  }
  void on_data(u32 peer, u32 data) override {
    if (self_.lost_[peer]) return;
    if (self_.changes_bytes() || self_.before_-- != 0) return events_.on_data(peer, data);
    switch (self_.fault_) {
      case Fault::flip:
      case Fault::truncate: return;  // happen where a write starts
      case Fault::duplicate: events_.on_data(peer, data); return events_.on_data(peer, data);
      case Fault::drop: return;
      case Fault::lose:
        self_.lost_[peer] = true;
        return events_.on_lost(peer, "the engine 'faulty' lost it, as it was told to");
      case Fault::hang: self_.hang(); return events_.on_data(peer, data);
    }
  }
  void on_done(u64 cookie) override { events_.on_done(cookie); }
  void on_lost(u32 peer, std::string const& why) override {
    if (!self_.lost_[peer]) events_.on_lost(peer, why);
  }

 private:
  Faulty& self_;
  Events& events_;
};

Faulty::Faulty(std::unique_ptr<Engine> engine, Fault fault, u64 seed)
    : Wrapper(std::move(engine)), fault_(fault), random_(seed), before_(random_() % most_before) {}

std::string Faulty::name() const { return "faulty " + Wrapper::name(); }

void Faulty::connect(std::vector<std::string> const& all) {
  lost_.resize(all.size());
  Wrapper::connect(all);
}

bool Faulty::send(u32 peer, std::span<char const> header, std::span<char const> payload,
                  u64 cookie) {
  if (!lost_[peer]) return Wrapper::send(peer, header, payload, cookie);
  done_.push_back(cookie);
  return true;
}

bool Faulty::write(u32 peer, std::span<char const> source, RemoteMemory const& target, u64 offset,
                   u32 data, u64 cookie) {
  if (lost_[peer]) return done_.push_back(cookie), true;
  bool const changed = changes_bytes() && !source.empty() && before_ == 0;
  if (changed) {
    if (fault_ == Fault::truncate) {
      source = source.first(random_() % source.size());
    } else {
      changed_.assign(source.begin(), source.end());
      u64 const bit = random_() % (changed_.size() * 8);
      changed_[bit / 8] = static_cast<char>(changed_[bit / 8] ^ 1 << bit % 8);
      source = changed_;
    }
  }
  if (!Wrapper::write(peer, source, target, offset, data, cookie)) return false;
  if (changes_bytes() && !source.empty()) --before_;
  return true;
}

bool Faulty::poll(Events& events) {
  auto const done = std::exchange(done_, {});
  for (auto const cookie : done) events.on_done(cookie);
  Filter filter(*this, events);
  return Wrapper::poll(filter) || !done.empty();
}

}  // namespace meshpost::net
