#include "compat/coaccel_network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/pauses.hpp"
#include "base/thread.hpp"
#include "world/wire.hpp"

// The functions for callers. The thread is in coaccel_progress.cpp.

namespace meshpost::coaccel {
namespace {

struct Holder {
  std::mutex mutex;
  std::shared_ptr<Network> network;
};
// Never freed: its thread may run until the process ends.
Holder& holder() {
  static auto* const one = new Holder;
  return *one;
}

}  // namespace

std::shared_ptr<Network> network() {
  std::scoped_lock const lock(holder().mutex);
  return holder().network;
}

void set_network(std::shared_ptr<Network> network) {
  std::scoped_lock const lock(holder().mutex);
  holder().network = std::move(network);
}

std::string name_of(LinkKey const& key) { return fmt::format("mpi:{}:{}", key.process, key.id); }

Network::Network(std::unique_ptr<net::Engine> engine, u32 own, u32 processes,
                 std::chrono::milliseconds deadline)
    : engine_(std::move(engine)), own_(own), processes_(processes), deadline_(deadline) {
  thread_ = start_thread("serve COACCEL's MPI devices", [this] { work(); });
}

Network::~Network() { end("the network has ended"); }

LinkKey Network::open(u32 process, u32 id) {
  LinkKey key{process, id, 0};
  auto const operation = "open " + name_of(key);
  auto const refuse = [&](std::string cause, char const* remedy) {
    throw Error(Kind::bad_argument, operation, std::move(cause), remedy);
  };
  if (process >= processes_)
    refuse(fmt::format("there are {} processes, counted from 0", processes_),
           "give the rank of another process of the communicator");
  if (process == own_)
    refuse("this is process " + std::to_string(own_) + " itself",
           "give the rank of another process; use pageable or pinned for memory of this one");
  std::scoped_lock const lock(mutex_);
  if (!ended_.empty())
    throw Error(Kind::misuse, operation, ended_, "open MPI devices before MPI_Finalize");
  if (auto const lost = lost_.find(process); lost != lost_.end())
    throw Error(Kind::peer_lost, operation,
                fmt::format("process {} is lost: {}", process, lost->second),
                "see its log; restart the job");
  for (auto const& [other, link] : links_)
    if (other.process == process && other.id == id)
      refuse("it is open", "use the device that is open, or another identifier: mpi:RANK:ID");
  key.opening = ++opened_[{process, id}];
  auto& link = links_.try_emplace(key, deadline_).first->second;
  try {
    if (auto const early = early_.extract(key))
      for (auto const& [header, bytes] : early.mapped()) take(key, link, header, bytes);
  } catch (...) {
    links_.erase(key);  // nobody would own it
    throw;
  }
  wake_.notify_one();
  return key;
}

void Network::close(LinkKey const& key) noexcept {
  std::scoped_lock const lock(mutex_);
  auto const found = links_.find(key);
  if (found == links_.end()) return;
  auto& link = found->second;
  try {
    // The other process learns what was taken even if this overtakes the last "taken".
    if (!link.failure)
      say(key, Says::closed, link.in.pending.empty() ? link.in.next : link.in.pending[0]->number);
    fail(key, link,
         Error(Kind::misuse, "close " + name_of(key), "a copy was in progress", "finish it first"),
         false);
    flush();
  } catch (...) {  // no memory for the text: the other process's deadline ends its copies
    link.failure.reset();
  }
  links_.erase(found);
  wake_.notify_one();
}

void Network::check(LinkKey const& key) {
  std::scoped_lock const lock(mutex_);
  if (auto const& failure = links_.at(key).failure) throw Error(*failure);
}

std::shared_ptr<Message> Network::start(LinkKey const& key, Way way, std::vector<Part> parts) {
  auto const message = std::make_shared<Message>();
  message->parts = std::move(parts);
  for (auto const& part : message->parts) message->size += part.size;
  std::scoped_lock const lock(mutex_);
  auto& link = links_.at(key);
  auto& side = way == Way::out ? link.out : link.in;
  message->number = side.next++;
  if (link.failure) {
    message->error = link.failure;
    message->over = true;
    return message;
  }
  if (side.pending.empty()) side.deadline.renew();
  side.pending.push_back(message);
  ++waiting_;
  started_ = true;
  if (way == Way::in) say(key, Says::ready, message->number, message->size);
  wake_.notify_one();
  return message;
}

void Network::wait(Message const& message) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return message.over; });
  if (message.error) throw Error(*message.error);
}

void Network::fail(LinkKey const& key, Error const& error) noexcept {
  std::scoped_lock const lock(mutex_);
  auto const found = links_.find(key);
  if (found == links_.end()) return;
  try {
    fail(key, found->second, error, true);
    wake_.notify_one();
  } catch (...) {
    return;  // no memory for the text: the deadline ends it
  }
}

void Network::end(std::string const& cause) noexcept {
  {
    std::scoped_lock const lock(mutex_);
    if (!ended_.empty()) return;
    ended_ = cause;
    for (auto& [key, link] : links_) try {
        fail(key, link,
             Error(Kind::misuse, name_of(key), cause, "finish copies and close MPI devices before"),
             true);
      } catch (...) {
        continue;  // no memory for the text: the other process's deadline ends its copies
      }
  }
  wake_.notify_one();
  thread_.join();
  // The last "taken" and "closed" may still be here.
  std::scoped_lock const lock(mutex_);
  try {
    Deadline timeout(std::chrono::seconds(1));
    for (Pauses pauses; (!flush() || !in_flight_.empty()) && !timeout.ends(); pauses.rest())
      engine_->poll(*this);
  } catch (...) {
    outbox_.clear();  // the engine is broken
  }
  engine_.reset();
}

}  // namespace meshpost::coaccel
