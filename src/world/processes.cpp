#include "world/processes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "meshpost/base/error.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/device/device.hpp"
#include "world/exchanges.hpp"
#include "world/join.hpp"

namespace meshpost {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto beat_every = std::chrono::milliseconds(500);
constexpr auto farewell_patience = std::chrono::seconds(1);
constexpr u32 own_channel = 0;

}  // namespace

class Processes::Implementation {
 public:
  explicit Implementation(Job job);
  ~Implementation();
  Implementation(Implementation const&) = delete;
  Implementation& operator=(Implementation const&) = delete;

  std::vector<std::string> exchange(u32 channel, std::string const& operation, std::string mine);
  void post(u32 channel, u32 to, std::string const& bytes);
  std::vector<Post> take_posts(u32 channel);
  void answer(u32 channel, Answer answer) {
    std::scoped_lock const lock(mutex_);
    if (answer) answers_[channel] = std::move(answer);
    else answers_.erase(channel);
  }
  std::string ask(u32 channel, u32 process, std::string const& question);
  std::string own_address() const;
  void wait_for_posts(u32 channel, std::chrono::microseconds patience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return lost_ || !posts_[channel].empty(); });
  }
  std::optional<Loss> lost() const {
    std::scoped_lock const lock(mutex_);
    return lost_;
  }
  Error lost_error(std::string const& operation, Loss const& loss) const {
    std::scoped_lock const lock(mutex_);
    return gone_error(operation, loss);
  }
  Job const& job() const { return job_; }
  pid_t owner() const { return owner_; }
  std::string name(u32 process) const {
    std::scoped_lock const lock(mutex_);
    return process < names_.size() ? fmt::format("process {} ({})", process, names_[process])
                                   : fmt::format("process {}", process);
  }

 private:
  bool hub() const { return job_.process == 0; }
  void admit(u32 process, std::unique_ptr<Line> line);
  void work();              // the thread that reads and writes
  void serve(u32 process);  // one line of it
  void on_frame(u32 from, wire::Frame const& frame);
  void on_frame_at_hub(u32 from, wire::Frame const& frame);
  void bring(u32 process, Exchanges::Key key, std::string operation, std::string part);
  void deliver(u32 from, u32 to, u32 channel, std::string const& bytes);
  void route_question(u32 from, wire::Header header, std::string const& bytes);
  void take_question(u32 from, wire::Header header, std::string const& bytes);
  void route_reply(u32 from, wire::Header const& header, std::string const& bytes);
  void mark_gone(Loss const& loss);
  void look_after_lines(Clock::time_point now);
  std::vector<std::string> warnings(Clock::time_point now);
  void send(u32 line, wire::Header const& header, std::string_view bytes = {});
  void send_all(wire::Header const& header, std::string_view bytes, u32 but);
  void wake() { eventfd_write(wake_.get(), 1); }
  Error gone_error(std::string const& operation, Loss const& loss) const;  // under the lock
  [[noreturn]] void throw_gone(std::string const& operation) const;

  Job const job_;
  pid_t const owner_ = getpid();
  Descriptor const wake_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  mutable std::mutex mutex_;  // of everything below
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Line>> lines_;  // process 0: by process; others: one, to process 0
  std::vector<bool> gone_;
  std::vector<Loss> gone_in_order_;
  std::optional<Loss> lost_;
  std::optional<Error> refused_;
  std::vector<std::string> names_;
  Exchanges exchanges_;
  std::map<Exchanges::Key, Exchanges::Outcome> outcomes_;
  std::map<u32, u64> sequences_;
  std::map<u32, std::vector<Post>> posts_;
  std::map<u32, Answer> answers_;
  u64 questions_ = 0;
  std::map<u64, std::string> replies_;
  Clock::time_point beat_at_{};
  bool closing_ = false;
  std::thread thread_;
};

Processes::Implementation::Implementation(Job job)
    : job_(std::move(job)), gone_(job_.processes), exchanges_(job_.processes) {
  lines_.resize(hub() ? job_.processes : 1);
  if (!hub()) lines_[0] = join::enter(job_);
  thread_ = std::thread([this] { work(); });
  try {
    if (hub())
      join::admit_all(job_, [this](u32 process, std::unique_ptr<Line> line) {
        admit(process, std::move(line));
      });
    auto names =
        exchange(own_channel, "join the job", fmt::format("{}, pid {}", join::host_name(), owner_));
    std::scoped_lock const lock(mutex_);
    names_ = std::move(names);
  } catch (Error const& error) {
    {
      std::scoped_lock const lock(mutex_);
      if (hub()) send_all({.type = wire::Type::refusal}, wire::pack(error), 0);
      closing_ = true;
    }
    wake();
    thread_.join();
    throw;
  }
}

Processes::Implementation::~Implementation() {
  {
    std::scoped_lock const lock(mutex_);
    send_all({.type = wire::Type::leave}, {}, job_.process);
    closing_ = true;
  }
  wake();
  thread_.join();
}

void Processes::Implementation::admit(u32 process, std::unique_ptr<Line> line) {
  {
    std::scoped_lock const lock(mutex_);
    lines_[process] = std::move(line);
  }
  wake();
}

void Processes::Implementation::send(u32 line, wire::Header const& header, std::string_view bytes) {
  if (!lines_[line]) return;
  lines_[line]->send(header, bytes);
  lines_[line]->flush();  // the thread sees to what is left, and to a connection that is broken
  if (lines_[line]->has_output()) wake();
}

void Processes::Implementation::send_all(wire::Header const& header, std::string_view bytes,
                                         u32 but) {
  for (u32 line = 0; line < lines_.size(); ++line)
    if (!hub() || line != but) send(line, header, bytes);
}

// -- the thread

void Processes::Implementation::work() {
  std::unique_lock lock(mutex_);
  auto give_up = Clock::time_point::max();
  for (;;) {
    std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
    bool output = false;
    for (auto const& line : lines_) {
      if (!line) continue;
      output |= line->has_output();
      polled.push_back(
          {line->socket(), static_cast<short>(POLLIN | (line->has_output() ? POLLOUT : 0)), 0});
    }
    if (closing_ && give_up == Clock::time_point::max()) give_up = Clock::now() + farewell_patience;
    if (closing_ && (!output || Clock::now() >= give_up)) return;
    lock.unlock();
    poll(polled.data(), polled.size(), 200);
    lock.lock();
    eventfd_t ignored = 0;
    eventfd_read(wake_.get(), &ignored);
    for (u32 line = 0; line < lines_.size(); ++line)
      if (lines_[line]) serve(line);
    auto const now = Clock::now();
    look_after_lines(now);
    if (auto const texts = warnings(now); !texts.empty()) {
      lock.unlock();  // what takes them is the user's
      for (auto const& text : texts) event_sink()->warning(text);
      lock.lock();
    }
  }
}

void Processes::Implementation::serve(u32 process) {
  auto& line = *lines_[process];
  bool stands = line.flush();
  stands &= line.receive();
  std::string how = "its connection ended without a farewell: it was killed, or crashed";
  if (!line.why().empty()) how = fmt::format("its connection broke: {}", line.why());
  try {
    while (lines_[process])
      if (auto const frame = line.next()) on_frame(process, *frame);
      else break;
  } catch (Error const& error) {
    stands = false;
    how = fmt::format("it sent garbage: {}", error.cause());
  }
  if (!stands && lines_[process]) mark_gone({process, false, how});
}

void Processes::Implementation::on_frame(u32 from, wire::Frame const& frame) {
  if (hub()) return on_frame_at_hub(from, frame);
  auto const& header = frame.header;
  wire::Unpacker unpacker(frame.bytes);
  switch (header.type) {
    case wire::Type::beat: break;
    case wire::Type::all: {
      auto& outcome = outcomes_[{header.channel, header.sequence}];
      for (u32 i = 0; i < job_.processes; ++i) outcome.parts.push_back(unpacker.text());
      break;
    }
    case wire::Type::mismatch:
      outcomes_[{header.channel, header.sequence}].mismatch = frame.bytes;
      break;
    case wire::Type::post: posts_[header.channel].push_back({header.process, frame.bytes}); break;
    case wire::Type::ask: take_question(header.process, header, frame.bytes); break;
    case wire::Type::reply: replies_[header.sequence] = frame.bytes; break;
    case wire::Type::lost: {
      bool const left = unpacker.value<bool>();
      mark_gone({header.process % job_.processes, left, unpacker.text()});
      break;
    }
    case wire::Type::leave: mark_gone({0, true, "it has ended"}); break;
    case wire::Type::refusal:
      refused_ = wire::unpack_error(frame.bytes);
      mark_gone({0, false, refused_->cause()});
      break;
    default: throw Error(Kind::bad_argument, "read a message", "it is not for this process", "");
  }
  changed_.notify_all();
}

void Processes::Implementation::on_frame_at_hub(u32 from, wire::Frame const& frame) {
  auto const& header = frame.header;
  wire::Unpacker unpacker(frame.bytes);
  switch (header.type) {
    case wire::Type::beat: break;
    case wire::Type::bring: {
      auto operation = unpacker.text();
      bring(from, {header.channel, header.sequence}, std::move(operation), unpacker.text());
      break;
    }
    case wire::Type::post: deliver(from, header.process, header.channel, frame.bytes); break;
    case wire::Type::ask: route_question(from, header, frame.bytes); break;
    case wire::Type::reply: route_reply(from, header, frame.bytes); break;
    case wire::Type::leave: mark_gone({from, true, "it has ended"}); break;
    default: throw Error(Kind::bad_argument, "read a message", "it is not for process 0", "");
  }
}

void Processes::Implementation::bring(u32 process, Exchanges::Key key, std::string operation,
                                      std::string part) {
  auto outcome = exchanges_.bring(key, process, std::move(operation), std::move(part));
  if (!outcome) return;
  wire::Packer packer;
  for (auto const& each : outcome->parts) packer.text(each);
  auto const type = outcome->mismatch.empty() ? wire::Type::all : wire::Type::mismatch;
  send_all({.type = type, .channel = key.first, .sequence = key.second},
           outcome->mismatch.empty() ? packer.take() : outcome->mismatch, 0);
  outcomes_[key] = std::move(*outcome);
  changed_.notify_all();
}

void Processes::Implementation::deliver(u32 from, u32 to, u32 channel, std::string const& bytes) {
  for (u32 process = 0; process < job_.processes; ++process) {
    if (process == from || (to != everyone && process != to)) continue;
    if (process == 0) posts_[channel].push_back({from, bytes});
    else send(process, {.type = wire::Type::post, .process = from, .channel = channel}, bytes);
  }
  changed_.notify_all();
}

// -- questions: from the asker to process 0, to the one asked, and back

void Processes::Implementation::route_question(u32 from, wire::Header header,
                                               std::string const& bytes) {
  u32 const to = header.process;
  header.process = from;
  if (to == 0) take_question(from, header, bytes);
  else if (to < job_.processes) send(to, header, bytes);
}

void Processes::Implementation::take_question(u32 from, wire::Header header,
                                              std::string const& bytes) {
  auto const found = answers_.find(header.channel);
  auto const answer = found == answers_.end() ? std::string() : found->second(from, bytes);
  header.type = wire::Type::reply;
  header.process = from;
  if (hub()) route_reply(0, header, answer);
  else send(0, header, answer);
}

void Processes::Implementation::route_reply(u32 /*from*/, wire::Header const& header,
                                            std::string const& bytes) {
  if (header.process == 0) replies_[header.sequence] = bytes;
  else if (header.process < job_.processes) send(header.process, header, bytes);
  changed_.notify_all();
}

std::string Processes::Implementation::ask(u32 channel, u32 process, std::string const& question) {
  std::unique_lock lock(mutex_);
  u64 const number = ++questions_;
  wire::Header const header{
      .type = wire::Type::ask, .process = process, .channel = channel, .sequence = number};
  if (hub()) route_question(0, header, question);
  else send(0, header, question);
  changed_.wait(lock, [&] { return replies_.contains(number) || gone_[process] || gone_[0]; });
  auto reply = replies_.extract(number);
  if (reply.empty()) throw_gone(fmt::format("ask process {}", process));
  return std::move(reply.mapped());
}

std::string Processes::Implementation::own_address() const {
  std::scoped_lock const lock(mutex_);
  for (auto const& line : lines_) {
    if (!line) continue;
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    char host[NI_MAXHOST] = {};
    if (getsockname(line->socket(), reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
        getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, nullptr, 0,
                    NI_NUMERICHOST) == 0)
      return host;
  }
  return {};
}

void Processes::Implementation::mark_gone(Loss const& loss) {
  if (gone_[loss.process]) return;
  gone_[loss.process] = true;
  gone_in_order_.push_back(loss);
  if (!loss.left && !lost_) lost_ = loss;
  if (hub() || loss.process == 0) lines_[hub() ? loss.process : 0].reset();
  if (hub())
    send_all({.type = wire::Type::lost, .process = loss.process},
             wire::Packer().value(loss.left).text(loss.how).take(), loss.process);
  changed_.notify_all();
}

void Processes::Implementation::look_after_lines(Clock::time_point now) {
  if (now - beat_at_ >= beat_every) {
    beat_at_ = now;
    send_all({.type = wire::Type::beat}, {}, job_.process);
  }
  if (job_.silence.count() == 0) return;
  for (u32 line = 0; line < lines_.size(); ++line)
    if (lines_[line] && now - lines_[line]->heard() > job_.silence)
      mark_gone({line, false,
                 fmt::format("no sign of life for {:.3g} s: it was stopped, or its host is out of "
                             "reach",
                             static_cast<double>(job_.silence.count()) * 1e-3)});
}

std::vector<std::string> Processes::Implementation::warnings(Clock::time_point now) {
  std::vector<std::string> texts;
  if (job_.silence.count() == 0) return texts;
  for (auto const& one : exchanges_.waiting_since((now - job_.silence).time_since_epoch().count()))
    texts.push_back(fmt::format("{} has waited {:.3g} s for process {}: all processes must call it",
                                one.operation, static_cast<double>(job_.silence.count()) * 1e-3,
                                fmt::join(one.missing, ", ")));
  return texts;
}

// -- callers

std::vector<std::string> Processes::Implementation::exchange(u32 channel,
                                                             std::string const& operation,
                                                             std::string mine) {
  std::unique_lock lock(mutex_);
  Exchanges::Key const key{channel, ++sequences_[channel]};
  if (hub()) {
    bring(0, key, operation, std::move(mine));
  } else {
    send(0, {.type = wire::Type::bring, .channel = channel, .sequence = key.second},
         wire::Packer().text(operation).text(mine).take());
  }
  changed_.wait(lock, [&] { return !gone_in_order_.empty() || outcomes_.contains(key); });
  auto found = outcomes_.extract(key);
  if (found.empty()) throw_gone(operation);
  if (!found.mapped().mismatch.empty())
    throw Error(Kind::misuse, operation, found.mapped().mismatch,
                "let all processes of the job make the same calls in the same order");
  return std::move(found.mapped().parts);
}

Error Processes::Implementation::gone_error(std::string const& operation, Loss const& loss) const {
  auto const who = loss.process < names_.size()
                       ? fmt::format("process {} ({})", loss.process, names_[loss.process])
                       : fmt::format("process {}", loss.process);
  return {Kind::peer_lost, operation, fmt::format("{} is gone: {}", who, loss.how),
          loss.left ? "let all processes of the job make the same calls before they end"
                    : "see its own messages, and start the job again"};
}

// One that was lost rather than one that has left, and the first: others have left because of it.
void Processes::Implementation::throw_gone(std::string const& operation) const {
  if (refused_) throw Error(*refused_);
  if (lost_) throw gone_error(operation, *lost_);
  throw gone_error(operation, gone_in_order_.front());
}

void Processes::Implementation::post(u32 channel, u32 to, std::string const& bytes) {
  std::scoped_lock const lock(mutex_);
  if (hub()) deliver(0, to, channel, bytes);
  else send(0, {.type = wire::Type::post, .process = to, .channel = channel}, bytes);
}

std::vector<Processes::Post> Processes::Implementation::take_posts(u32 channel) {
  std::scoped_lock const lock(mutex_);
  return std::exchange(posts_[channel], {});
}

// -- the face

std::shared_ptr<Processes> Processes::of_job() {
  static std::mutex mutex;
  static std::shared_ptr<Processes> joined;
  refuse_after_fork("join the job");
  std::scoped_lock const lock(mutex);
  if (joined) return joined;
  auto const job = job_from([](char const* name) { return std::getenv(name); });
  if (!job.alone()) joined = std::make_shared<Processes>(job);
  return joined;
}

Processes::Processes(Job const& job) : implementation_(std::make_unique<Implementation>(job)) {}
Processes::~Processes() {
  // In a forked child the thread is missing, and the connections are the parent's.
  if (getpid() == implementation_->owner()) return;
  [[maybe_unused]] auto const* const kept = implementation_.release();
}
u32 Processes::number() const { return job().process; }
u32 Processes::count() const { return job().processes; }
Job const& Processes::job() const { return implementation_->job(); }
std::string Processes::name(u32 process) const { return implementation_->name(process); }
std::vector<std::string> Processes::exchange(u32 channel, std::string const& operation,
                                             std::string mine) {
  return implementation_->exchange(channel, operation, std::move(mine));
}
void Processes::post(u32 channel, u32 to, std::string const& bytes) {
  implementation_->post(channel, to, bytes);
}
std::vector<Processes::Post> Processes::take_posts(u32 channel) {
  return implementation_->take_posts(channel);
}
void Processes::wait_for_posts(u32 channel, std::chrono::microseconds patience) {
  implementation_->wait_for_posts(channel, patience);
}
void Processes::answer(u32 channel, Answer answer) {
  implementation_->answer(channel, std::move(answer));
}
std::string Processes::ask(u32 channel, u32 process, std::string question) {
  return implementation_->ask(channel, process, question);
}
std::string Processes::own_address() const { return implementation_->own_address(); }
std::optional<Loss> Processes::lost() const { return implementation_->lost(); }
Error Processes::lost_error(std::string const& operation, Loss const& loss) const {
  return implementation_->lost_error(operation, loss);
}

}  // namespace meshpost
