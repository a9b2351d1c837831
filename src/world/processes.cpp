#include "world/processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/fork.hpp"
#include "base/tsan_order.hpp"
#include "meshpost/device/device.hpp"
#include "world/join.hpp"
#include "world/open_files.hpp"
#include "world/processes_state.hpp"
#include "world/secret.hpp"

namespace meshpost {
namespace {

constexpr std::chrono::milliseconds least_beat(2), most_beat(500);
constexpr std::chrono::seconds farewell_timeout(5);  // without any byte being taken
constexpr u32 own_channel = 0;

// Several beats in each silence: that of the others may be as short as ours.
std::chrono::milliseconds beat_of(Job const& job) {
  return job.silence.count() == 0 ? most_beat : std::clamp(job.silence / 4, least_beat, most_beat);
}

}  // namespace

Processes::Implementation::Implementation(Job job)
    : job_(std::move(job)),
      beat_every_(beat_of(job_)),
      longest_look_(beat_every_ / 2 + Deadline::usual_gap),
      gone_(job_.processes),
      exchanges_(job_.processes, Deadline(job_.silence, longest_look_)),
      farewell_{.timeout = Deadline(farewell_timeout, longest_look_)} {
  make_room_for_files(job_.processes);
  if (!wake_) throw lack_of_files("join the job", "there is no eventfd", errno, job_.processes);
  lines_.resize(hub() ? job_.processes : 1);
  silences_.assign(lines_.size(), Deadline(job_.silence, longest_look_));
  if (!hub()) lines_[0] = join::enter(job_);
  thread_ = std::thread([this] { work(); });
  try {
    if (hub() && !job_.alone())
      join::admit_all(
          job_, {.welcome = [this](u32 process,
                                   std::unique_ptr<Line> line) { admit(process, std::move(line)); },
                 .check = [this] { throw_lost("join the job"); },
                 .dismiss = [this](Error const& error) { dismiss(error); }});
    auto names = exchange(own_channel, "join the job",
                          fmt::format("{}, pid {}", join::host_name(), getpid()));
    std::scoped_lock const lock(mutex_);
    names_ = std::move(names);
  } catch (Error const& error) {
    dismiss(error);
    close();
    throw;
  }
}

Processes::Implementation::~Implementation() {
  {
    std::scoped_lock const lock(mutex_);
    send_all({.type = wire::Type::leave}, {}, job_.process);
  }
  close();
}

void Processes::Implementation::dismiss(Error const& error) {
  std::scoped_lock const lock(mutex_);
  if (hub()) send_all({.type = wire::Type::refusal}, wire::pack(error), 0);
}

void Processes::Implementation::close() {
  {
    std::scoped_lock const lock(mutex_);
    closing_ = true;
  }
  wake();
  thread_.join();
}

void Processes::Implementation::throw_lost(std::string const& operation) const {
  std::scoped_lock const lock(mutex_);
  if (lost_) throw gone_error(operation, *lost_);
}

void Processes::Implementation::admit(u32 process, std::unique_ptr<Line> line) {
  {
    std::scoped_lock const lock(mutex_);
    lines_[process] = std::move(line);
    silences_[process].renew();
  }
  wake();
}

void Processes::Implementation::send(u32 line, wire::Header const& header, std::string_view bytes) {
  if (!lines_[line]) return;
  lines_[line]->send(header, bytes);
  lines_[line]->flush();  // the thread sends the rest, and handles a broken connection
  if (lines_[line]->has_output()) wake();
}

void Processes::Implementation::send_all(wire::Header const& header, std::string_view bytes,
                                         u32 but) {
  for (u32 line = 0; line < lines_.size(); ++line)
    if (!hub() || line != but) send(line, header, bytes);
}

u64 Processes::Implementation::exchanges(u32 channel) const {
  std::scoped_lock const lock(mutex_);
  auto const found = sequences_.find(channel);
  return found == sequences_.end() ? 0 : found->second;
}

u64 Processes::Implementation::mismatches(u32 channel) const {
  std::scoped_lock const lock(mutex_);
  auto const found = mismatches_.find(channel);
  return found == mismatches_.end() ? 0 : found->second;
}

void Processes::Implementation::come_to(u32 channel, u32 step) {
  std::scoped_lock const lock(mutex_);
  steps_[channel] = step;
}

bool Processes::Implementation::awaited_before(u32 channel, u32 step) const {
  std::scoped_lock const lock(mutex_);
  auto const found = awaited_.find(channel);
  if (found == awaited_.end()) return false;
  auto const joined = sequences_.find(channel);
  u64 const last = joined == sequences_.end() ? 0 : joined->second;
  return found->second.sequence > last && static_cast<i32>(found->second.step - step) < 0;
}

std::vector<std::string> Processes::Implementation::exchange(u32 channel,
                                                             std::string const& operation,
                                                             std::string mine, Waiters waiters) {
  if (operation.size() + mine.size() + 2 * sizeof(u64) + sizeof(Waiters) + sizeof(u32) >
      wire::most)  // before others count on this process
    throw Error(
        Kind::bad_argument, operation,
        fmt::format("this process's part has {} bytes; there may be {}", mine.size(), wire::most),
        "send less at a time");
  others_are_told();
  std::unique_lock lock(mutex_);
  Exchanges::Key const key{channel, ++sequences_[channel]};
  if (hub()) {
    bring(0, key, operation, std::move(mine), waiters, steps_[channel]);
  } else {
    send(0, {.type = wire::Type::bring, .channel = channel, .sequence = key.second},
         wire::Packer().text(operation).text(mine).value(waiters).value(steps_[channel]).take());
  }
  changed_.wait(lock, [&] { return first_gone_ || outcomes_.contains(key); });
  heard_of_others();
  auto found = outcomes_.extract(key);
  if (found.empty()) throw_gone(operation);
  if (found.mapped().mismatch.empty()) return std::move(found.mapped().parts);
  ++mismatches_[channel];
  throw Error(Kind::misuse, operation, found.mapped().mismatch,
              "let all processes of the job make the same calls in the same order");
}

std::string Processes::Implementation::name_of(u32 process) const {
  return process < names_.size() ? fmt::format("process {} ({})", process, names_[process])
                                 : fmt::format("process {}", process);
}

Error Processes::Implementation::gone_error(std::string const& operation, Loss const& loss) const {
  if (loss.process == job_.process)
    return {Kind::peer_lost, operation,
            fmt::format("the other processes of the job go on without this one, {}: {}",
                        name_of(loss.process), loss.how),
            "start the job again; if it was busy or stopped for so long, raise "
            "MESHPOST_PEER_DEADLINE"};
  return {Kind::peer_lost, operation,
          fmt::format("{} is gone: {}", name_of(loss.process), loss.how),
          loss.left ? "let all processes of the job make the same calls before they end"
                    : "see its own messages, and start the job again"};
}

// Prefers a process that was lost to one that has left: it may have left because of the other.
void Processes::Implementation::throw_gone(std::string const& operation) const {
  if (refused_) throw Error(*refused_);
  if (lost_) throw gone_error(operation, *lost_);
  throw gone_error(operation, first_gone_.value());
}

void Processes::Implementation::post(u32 channel, u32 to, std::string const& bytes) {
  others_are_told();
  std::scoped_lock const lock(mutex_);
  if (hub()) deliver(0, to, channel, bytes);
  else send(0, {.type = wire::Type::message, .process = to, .channel = channel}, bytes);
}

std::vector<Processes::Message> Processes::Implementation::take_messages(u32 channel) {
  heard_of_others();
  std::scoped_lock const lock(mutex_);
  return std::exchange(messages_[channel], {});
}

// -- the public functions

std::shared_ptr<Processes> Processes::of_job() {
  static std::mutex mutex;
  begin_secrets();
  static std::shared_ptr<Processes> joined;
  refuse_after_fork("join the job");
  std::scoped_lock const lock(mutex);
  if (joined) return joined;
  auto const job = job_from([](char const* name) { return std::getenv(name); });
  if (!job.alone()) joined = std::make_shared<Processes>(job);
  return joined;
}

Processes::Processes(Job const& job) {
  refuse_after_fork("join the job");
  implementation_ = std::make_unique<Implementation>(job);
}
Processes::~Processes() {
  // A forked child has no such thread, and the connections are the parent's.
  leave_to_parent(implementation_);
}
u32 Processes::number() const { return job().process; }
u32 Processes::count() const { return job().processes; }
Job const& Processes::job() const { return implementation_->job(); }
u32 Processes::take_channel() { return implementation_->take_channel(); }
std::string Processes::name(u32 process) const { return implementation_->name(process); }
std::vector<std::string> Processes::exchange(u32 channel, std::string const& operation,
                                             std::string mine, Waiters waiters) {
  return implementation_->exchange(channel, operation, std::move(mine), waiters);
}
u64 Processes::exchanges(u32 channel) const { return implementation_->exchanges(channel); }
u64 Processes::mismatches(u32 channel) const { return implementation_->mismatches(channel); }
void Processes::come_to(u32 channel, u32 step) { implementation_->come_to(channel, step); }
bool Processes::awaited_before(u32 channel, u32 step) const {
  return implementation_->awaited_before(channel, step);
}
void Processes::post(u32 channel, u32 to, std::string const& bytes) {
  implementation_->post(channel, to, bytes);
}
std::vector<Processes::Message> Processes::take_messages(u32 channel) {
  return implementation_->take_messages(channel);
}
void Processes::wait_for_messages(u32 channel, std::chrono::microseconds timeout) {
  implementation_->wait_for_messages(channel, timeout);
}
void Processes::answer(u32 channel, Answer answer) {
  implementation_->answer(channel, std::move(answer));
}
std::string Processes::ask(u32 channel, u32 process, std::string const& question) {
  return implementation_->ask(channel, process, question);
}
std::string Processes::own_address() const { return implementation_->own_address(); }
std::optional<Loss> Processes::lost() const { return implementation_->lost(); }
std::optional<Loss> Processes::gone() const { return implementation_->gone(); }
std::vector<Loss> Processes::losses() const { return implementation_->losses(); }
std::vector<std::string> Processes::silent() const { return implementation_->silent(); }
std::optional<Loss> Processes::gone(u32 process) const { return implementation_->gone(process); }
Error Processes::lost_error(std::string const& operation, Loss const& loss) const {
  return implementation_->lost_error(operation, loss);
}

}  // namespace meshpost
