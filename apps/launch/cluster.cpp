#include "cluster.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <thread>

#include "reach.hpp"
#include "rendezvous.hpp"

namespace meshpost::launch {
namespace {

constexpr std::chrono::seconds for_the_name{2};  // the resolver may take long for nothing

std::string this_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

bool is_here(std::string const& name) {
  auto const own = this_host();
  return name == "localhost" || name == own || name == own.substr(0, own.find('.'));
}

// What ssh hands over goes through a shell there.
std::string quoted(std::string const& word) {
  if (word.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-") ==
      std::string::npos)
    return word;
  std::string text = "'";
  for (char const c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// In a thread of its own, which nobody waits for.
std::future<std::vector<std::string>> look_up(std::string const& host) {
  std::promise<std::vector<std::string>> promise;
  auto result = promise.get_future();
  std::thread([host, promise = std::move(promise)]() mutable {
    promise.set_value(resolve(host, "0", "0"));
  }).detach();
  return result;
}

}  // namespace

Cluster::Cluster(Plan plan, Orders orders, rlimit files, Reports& reports)
    : plan_(std::move(plan)),
      orders_(std::move(orders)),
      reports_(reports),
      members_(plan_.host_of.size()),
      text_(fresh_secret()) {
  u32 const count = plan_.host_of.back() + 1;
  reached_.resize(count);
  if (plan_.patience.count() > 0) deadline_ = Clock::now() + plan_.patience;
  for (u32 host = 0; host < count; ++host) {
    There::Calls calls;
    calls.greeted = [this] { on_greeting(); };
    calls.said = [this, host](Frame const& frame) { on_frame(host, frame); };
    calls.printed = [this, host](std::string const& line) {
      reports_.say(fmt::format("[{}] {}", plan_.hosts[host].name, line));
    };
    calls.gone = [this, host](std::string const& why) { on_gone(host, why); };
    calls.full = [this] { return reports_.full(1) || reports_.full(2); };
    agents_.push_back(std::make_unique<There>(command_to(plan_.hosts[host]), plan_.silence, files,
                                              std::move(calls)));
    guard_.watch(agents_.back()->pid());
  }
  auto const& first = plan_.hosts.front().name;
  if (count > 1 && plan_.meeting_host.empty() && first != "localhost")
    name_ = look_up(first.substr(first.find('@') + 1));  // npos + 1: all of it
}

// All are let go first: they end at the same time.
Cluster::~Cluster() {
  failed_ = true;  // what comes now is of no interest
  for (auto const& agent : agents_) agent->let_go();
}

std::vector<std::string> Cluster::command_to(Host const& host) const {
  if (plan_.direct && is_here(host.name)) return {plan_.launcher, "--agent"};
  auto words = plan_.way;
  words.insert(words.end(), {host.name, quoted(plan_.launcher), "--agent"});
  return words;
}

std::vector<u32> Cluster::processes_on(u32 host) const {
  std::vector<u32> all;
  for (u32 k = 0; k < members_.size(); ++k)
    if (plan_.host_of[k] == host) all.push_back(k);
  return all;
}

// -- until all have started

void Cluster::on_greeting() {
  ++greeted_;
  if (agents_.size() == 1) return meet_at({});
  if (agents_.front()->greeted() && !std::exchange(listens_, true))
    agents_.front()->send(
        {Say::listen, 0, plan_.meeting_port, pack_list({plan_.meeting_host, text_})});
  try_all();
}

void Cluster::on_listening(std::vector<std::string> const& answer) {
  if (answer.size() < 3) return;
  auto const some = std::min<std::size_t>(std::stoul("0" + answer[2]), answer.size() - 3);
  auto const list = answer.begin() + 3;
  auto const end_of_some = list + static_cast<std::ptrdiff_t>(some);
  if (some > 0) tried_.assign(list, end_of_some);
  else if (!plan_.meeting_host.empty()) tried_ = resolve(plan_.meeting_host, answer[0], answer[1]);
  else {
    bool const known = name_.valid() && name_.wait_for(for_the_name) == std::future_status::ready;
    for (auto const& one : known ? name_.get() : std::vector<std::string>())
      tried_.push_back(one.substr(0, one.rfind(':') + 1) +
                       (one.starts_with('[') ? answer[1] : answer[0]));
    // Names often lead to a host's own loopback interface on that host: not before the others.
    std::erase_if(tried_, [](auto const& one) { return one.starts_with("127."); });
    for (auto one = end_of_some; one != answer.end(); ++one)
      if (std::ranges::find(tried_, *one) == tried_.end()) tried_.push_back(*one);
  }
  if (tried_.empty())
    return fail(
        fmt::format("read --rendezvous: '{}' is no interface of {}, and no host's name; name "
                    "an address or an interface of that host",
                    plan_.meeting_host, plan_.hosts.front().name),
        2);
  try_all();
}

void Cluster::try_all() {
  if (greeted_ < agents_.size() || tried_.empty()) return;
  std::vector<std::string> list{text_};
  list.insert(list.end(), tried_.begin(), tried_.end());
  for (auto const& agent : agents_) agent->send({Say::reach, 0, 0, pack_list(list)});
}

void Cluster::on_reached(u32 host, std::vector<std::string> const& addresses) {
  reached_[host] = addresses;
  if (++answered_ != agents_.size()) return;
  for (auto const& address : tried_)
    if (std::ranges::all_of(reached_, [&](auto const& list) {
          return std::ranges::find(list, address) != list.end();
        }))
      return meet_at(address);
  std::string who;
  for (u32 one = 0; one < reached_.size(); ++one)
    who += fmt::format(
        "{}{} reaches {}", one > 0 ? ", " : "", plan_.hosts[one].name,
        reached_[one].empty() ? "none" : fmt::format("{}", fmt::join(reached_[one], " ")));
  fail(fmt::format(
           "find where the processes meet: no address of {} leads there from all hosts; of {} "
           "{}; let a firewall there pass a port and name it, or an address or interface, "
           "with --rendezvous",
           plan_.hosts.front().name, fmt::join(tried_, " "), who),
       1);
}

// Until process 0's agent has its orders, it tells whoever comes that it listens. A process of
// another host would take that for a stranger's word, so none starts before.
void Cluster::meet_at(std::string const& rendezvous) {
  deadline_.reset();
  orders_.job.rendezvous = rendezvous;
  agents_.front()->send({Say::job, 0, 0, pack(orders_)});
}

void Cluster::start_all() {
  started_ = true;
  for (u32 host = 0; host < agents_.size(); ++host) {
    if (host > 0) agents_[host]->send({Say::job, 0, 0, pack(orders_)});
    for (u32 const k : processes_on(host)) agents_[host]->send({Say::start, k, 0, {}});
  }
}

// -- what agents say

void Cluster::on_frame(u32 host, Frame const& frame) {
  auto const k = frame.process;
  if (k >= members_.size() || plan_.host_of[k] != host) {
    if (k != 0) return;
  } else if (frame.say == Say::started) {
    members_[k].streams = 2;
    return reports_.started(k, frame.number);
  } else if (frame.say == Say::not_started) {
    members_[k].over = true;
    return reports_.lost({k}, fmt::format("process {} on {}: {}", k, plan_.name_of(k), frame.text),
                         frame.number);
  } else if (frame.say == Say::printed && members_[k].streams > 0) {
    int const stream = frame.number == 1 ? 1 : 2;
    if (!frame.text.empty()) return reports_.printed(k, stream, frame.text);
    --members_[k].streams;
    return reports_.printed_all(k, stream);
  } else if (frame.say == Say::ended && !std::exchange(members_[k].over, true)) {
    return reports_.ended(k, {frame.number < 0, std::abs(frame.number)});
  } else if (frame.say == Say::input_taken) {
    return reports_.input_taken();
  }
  if (frame.say == Say::listens && host == 0) on_listening(unpack_list(frame.text));
  else if (frame.say == Say::reached) on_reached(host, unpack_list(frame.text));
  else if (frame.say == Say::ready && host == 0) start_all();
  else if (frame.say == Say::failed)
    fail(fmt::format("start on {}: {}", plan_.hosts[host].name, frame.text), frame.number);
}

void Cluster::on_gone(u32 host, std::string const& why) {
  auto const& name = plan_.hosts[host].name;
  if (!started_) return fail(fmt::format("start on {}: {}", name, why), 1);
  std::vector<u32> left;
  for (u32 const k : processes_on(host)) {
    end_streams(k);
    if (!std::exchange(members_[k].over, true)) left.push_back(k);
  }
  if (!left.empty() && !failed_) reports_.lost(left, fmt::format("{} is lost: {}", name, why), 1);
}

// Nothing has been started, or what has been ends with its agents.
void Cluster::fail(std::string const& why, int status) {
  if (std::exchange(failed_, true)) return;
  deadline_.reset();
  std::vector<u32> left;
  for (u32 k = 0; k < members_.size(); ++k) {
    end_streams(k);
    if (!std::exchange(members_[k].over, true)) left.push_back(k);
  }
  for (auto const& agent : agents_) agent->let_go();
  reports_.lost(left, why, status);
}

void Cluster::end_streams(u32 process) {
  if (std::exchange(members_[process].streams, 0) == 0) return;
  for (int const stream : {1, 2}) reports_.printed_all(process, stream);
}

// -- as a Place

void Cluster::watch(Poller& poller) {
  for (auto const& agent : agents_) agent->watch(poller);
}

void Cluster::collect(pid_t /*child*/) {
  for (auto const& agent : agents_) agent->collect();
}

void Cluster::signal(int number) {
  bool const for_the_way = number == SIGSTOP || number == SIGCONT;
  if (!started_ && !for_the_way && number != SIGUSR1 && number != SIGUSR2)
    return fail("ended before any process was started", 128 + number);
  for (auto const& agent : agents_) {
    if (number == SIGCONT) agent->excuse();
    agent->send({Say::signal, 0, number, {}});
    agent->flush();  // the launcher may be about to stop
  }
}

void Cluster::give(std::string bytes) {
  agents_[plan_.host_of.front()]->send({Say::input, 0, 0, std::move(bytes)});
}

bool Cluster::open() const {
  return std::ranges::any_of(members_, [](auto const& one) { return one.streams > 0; });
}

void Cluster::close() {
  for (auto const& agent : agents_) agent->send({Say::close, 0, 0, {}});
}

void Cluster::cut() {
  for (u32 host = 0; host < agents_.size(); ++host)
    if (std::ranges::any_of(processes_on(host),
                            [this](u32 k) { return !members_[k].over || members_[k].streams > 0; }))
      agents_[host]->cut("its processes were killed, and it does not say that they have ended");
}

std::optional<Clock::time_point> Cluster::next() const {
  auto until = Clock::now() + std::chrono::hours(1);
  for (auto const& agent : agents_) until = std::min(until, agent->next());
  return deadline_ ? std::min(*deadline_, until) : until;
}

void Cluster::on_time() {
  for (auto const& agent : agents_) agent->on_time();
  if (!deadline_ || Clock::now() < *deadline_) return;
  std::vector<std::string> silent;
  for (u32 host = 0; host < agents_.size(); ++host)
    if (!agents_[host]->greeted()) silent.push_back(plan_.hosts[host].name);
  if (silent.empty())
    return fail(
        "start: all hosts answered, but it was not complete in time; what --ssh names must "
        "pass on bytes at once (srun: -u), or raise MESHPOST_START_DEADLINE (seconds)",
        1);
  fail(
      fmt::format("start on {}: no answer within {:.3g} s; see that ssh leads there without asking "
                  "anything, raise MESHPOST_START_DEADLINE (seconds) if it takes long",
                  fmt::join(silent, ", "), static_cast<double>(plan_.patience.count()) * 1e-3),
      1);
}

}  // namespace meshpost::launch
