#include "meshpost/rma/delivery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <vector>

#include "meshpost/base/error.hpp"
#include "rma/checks/delivery_ledger.hpp"

namespace meshpost {
namespace {

// The bytes of an undelivered target: NaN as a floating number, -1 as an integer.
constexpr unsigned char undelivered = 0xff;

// A put whose bytes are kept here (counter null), or a notification. A stored word counts as a
// notification, with its own address as the counter's.
struct Message {
  u32 from;
  char* target;
  std::vector<char> bytes;
  void const* counter;
  bool announced;  // a notification followed: nobody may touch the target now
};

bool overlap(char const* a, u64 a_bytes, char const* b, u64 b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

class Ledger : public DeliveryLedger {
 public:
  Ledger(u32 ranks, std::function<std::string(void const*)> place)
      : inbox_(ranks), place_(std::move(place)) {}

  std::string put(u32 from, u32 to, char* target, char const* source, u64 bytes) {
    std::scoped_lock const lock(mutex_);
    std::vector<char> kept(source, source + bytes);
    if (auto const* const other =
            find(target, bytes, [&](Message const& m) { return m.announced || m.from != from; }))
      return fmt::format("it overwrites {}, which rank {} has put and the target not yet consumed",
                         place_(other->target), other->from);
    std::memset(target, undelivered, bytes);
    inbox_[to].push_back({from, target, std::move(kept), nullptr, false});
    return {};
  }

  void notify(u32 from, u32 to, u32 const* counter) {
    std::scoped_lock const lock(mutex_);
    for (auto& message : inbox_[to])
      if (message.from == from) message.announced = true;
    inbox_[to].push_back({from, nullptr, {}, counter, true});
  }

  std::string consume(u32 to, u32 const* counter, u32 count) {
    std::scoped_lock const lock(mutex_);
    auto& inbox = inbox_[to];
    std::string violation;
    for (auto at = inbox.begin(); at != inbox.end() && count != 0;) {
      if (at->counter != counter) {
        ++at;
        continue;
      }
      --count;
      u32 const from = at->from;
      at = inbox.erase(at);
      deliver(inbox, from, at, violation);
    }
    return violation;
  }

  // A rank that sees the word sees the value stored last. So older ones need no entry.
  void put_value(u32 from, u32 to, void const* word) {
    std::scoped_lock const lock(mutex_);
    auto& inbox = inbox_[to];
    std::erase_if(inbox, [&](Message const& m) { return m.from == from && m.counter == word; });
    inbox.push_back({from, nullptr, {}, word, false});
  }

  // Parts of a device's ranks may overlap. So the word may have been stored for another rank of it.
  std::string wait_until(void const* word) {
    std::scoped_lock const lock(mutex_);
    std::string violation;
    for (auto& inbox : inbox_) see(inbox, word, violation);
    return violation;
  }

  std::string use(u32 rank, char const* data, u64 bytes) {
    std::scoped_lock const lock(mutex_);
    auto const* const message = find(data, bytes, [](Message const&) { return true; });
    if (!message) return {};
    return fmt::format("rank {} reads {}, which rank {} has put and the target not yet consumed",
                       rank, place_(message->target), message->from);
  }

  void finish() override {
    std::scoped_lock const lock(mutex_);
    std::string violation;
    for (auto const& inbox : inbox_)
      for (auto const& message : inbox)
        if (!message.counter && violation.empty()) violation = check(message);
    for (auto const& inbox : inbox_)  // only now: a rank's own puts may overlap
      for (auto const& message : inbox)
        if (!message.counter)
          std::memcpy(message.target, message.bytes.data(), message.bytes.size());
    if (!violation.empty())
      throw Error(Kind::kernel_failed, "delivery", violation,
                  "consume the notification before the bytes are used");
  }

 private:
  template <class Pick>
  Message const* find(char const* data, u64 bytes, Pick&& pick) const {
    if (bytes == 0) return nullptr;
    for (auto const& inbox : inbox_)
      for (auto const& message : inbox)
        if (!message.counter && overlap(message.target, message.bytes.size(), data, bytes) &&
            pick(message))
          return &message;
    return nullptr;
  }
  void see(std::list<Message>& inbox, void const* word, std::string& violation) const {
    for (auto at = inbox.begin(); at != inbox.end();) {
      if (at->counter != word) {
        ++at;
        continue;
      }
      u32 const from = at->from;
      at = inbox.erase(at);
      deliver(inbox, from, at, violation);
      // A word announces nothing: its sender may have put over the same bytes since.
      for (auto later = at; later != inbox.end(); ++later)
        if (later->from == from && !later->counter)
          std::memset(later->target, undelivered, later->bytes.size());
    }
  }
  // Delivers everything that rank `from` put before `end`, in order.
  void deliver(std::list<Message>& inbox, u32 from, std::list<Message>::iterator end,
               std::string& violation) const {
    for (auto one = inbox.begin(); one != end && violation.empty(); ++one)
      if (one->from == from && !one->counter) violation = check(*one);
    for (auto one = inbox.begin(); one != end;)
      if (one->from == from && !one->counter) {
        std::memcpy(one->target, one->bytes.data(), one->bytes.size());
        one = inbox.erase(one);
      } else {
        ++one;
      }
  }
  std::string check(Message const& message) const {
    bool const untouched =
        std::all_of(message.target, message.target + message.bytes.size(),
                    [](char byte) { return static_cast<unsigned char>(byte) == undelivered; });
    return untouched
               ? std::string()
               : fmt::format(
                     "somebody overwrote {} after rank {} had put it and before it was consumed",
                     place_(message.target), message.from);
  }

  std::mutex mutex_;
  std::vector<std::list<Message>> inbox_;  // by target rank, in the order of arrival
  std::function<std::string(void const*)> place_;
};

Ledger& own(DeliveryLedger* ledger) { return static_cast<Ledger&>(*ledger); }

void fail_if(std::string const& violation, Block& block, Operation operation) {
  if (!violation.empty()) block.fail(operation, Fault::delivery, 0, 0, 0, violation.c_str());
}

}  // namespace

namespace delivery {

void put(DeliveryLedger* ledger, Block& block, u32 from, u32 to, void* target, void const* source,
         u64 bytes) {
  fail_if(own(ledger).put(from, to, static_cast<char*>(target), static_cast<char const*>(source),
                          bytes),
          block, Operation::put);
}
void notify(DeliveryLedger* ledger, Block& /*block*/, u32 from, u32 to, u32 const* counter) {
  own(ledger).notify(from, to, counter);
}
void consume(DeliveryLedger* ledger, Block& block, u32 to, u32 const* counter, u32 count) {
  fail_if(own(ledger).consume(to, counter, count), block, Operation::wait);
}
void put_value(DeliveryLedger* ledger, u32 from, u32 to, void const* word) {
  own(ledger).put_value(from, to, word);
}
void wait_until(DeliveryLedger* ledger, Block& block, void const* word) {
  fail_if(own(ledger).wait_until(word), block, Operation::wait_until);
}
void use(DeliveryLedger* ledger, Block& block, Operation operation, u32 rank, void const* data,
         u64 bytes) {
  fail_if(own(ledger).use(rank, static_cast<char const*>(data), bytes), block, operation);
}

}  // namespace delivery

namespace detail {
std::shared_ptr<DeliveryLedger> make_ledger(u32 ranks,
                                            std::function<std::string(void const*)> place) {
  return std::make_shared<Ledger>(ranks, std::move(place));
}
}  // namespace detail

}  // namespace meshpost
