#include "world/mpi/meet.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "meshpost/base/config.hpp"
#include "meshpost/base/error.hpp"
#include "world/join.hpp"
#include "world/mpi/addresses.hpp"
#include "world/mpi/text_channel.hpp"
#include "world/rendezvous.hpp"
#include "world/wire.hpp"

// All processes say hello to process 0. It asks each whether it still waits. When all have
// answered, process 0 tells them where to go. If they are on several hosts, it first sends
// addresses where it might be reached. They try these, and it chooses one that works for all. A
// text may be of an earlier call, which failed because a process did not come. So each text names
// its call by a random number that the caller has drawn. A process whose earlier call failed does
// not count as here.

namespace meshpost {
namespace {

using Clock = std::chrono::steady_clock;
constexpr char const* operation = "join over MPI";
constexpr auto pause = std::chrono::milliseconds(1);
constexpr auto try_timeout = std::chrono::seconds(2);
constexpr auto verdict_timeout = std::chrono::seconds(10);  // beyond process 0's timeout
constexpr u64 magic = 0x6d657368706f7374;                   // "meshpost"

enum class Says : u32 { hello, still_there, here, try_these, reached, go, refusal };

struct Message {
  u64 call = 0;
  Says says = Says::hello;
  std::vector<std::string> texts;

  std::string pack() const {
    wire::Packer packer;
    packer.value(magic).value(call).value(says).value(static_cast<u32>(texts.size()));
    for (auto const& text : texts) packer.text(text);
    return packer.take();
  }
  /// Nothing if the text is not of meshpost.
  static std::optional<Message> unpack(TextChannel::Text const& received) {
    try {
      wire::Unpacker unpacker(received.text);
      if (unpacker.value<u64>() != magic) return std::nullopt;
      Message message;
      message.call = unpacker.value<u64>();
      message.says = unpacker.value<Says>();
      for (u32 left = unpacker.value<u32>(); left > 0; --left)
        message.texts.push_back(unpacker.text());
      return message;
    } catch (Error const&) {
      return std::nullopt;
    }
  }
};

[[noreturn]] void refuse_foreign(int from) {
  throw Error(
      Kind::misuse, operation,
      fmt::format("process {} has sent something else with tag {}", from, TextChannel::tag),
      "leave this tag to meshpost, or give it a duplicate of the communicator; let all processes "
      "run the same build");
}

// Equal if processes share a host and its network, and MESHPOST_NODE does not separate them.
std::string host_identity(Job const& job) {
  struct stat network{};
  stat("/proc/self/ns/net", &network);
  return fmt::format("{}/{}/{}", join::boot_id(), network.st_ino, job.node);
}

double seconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) * 1e-3; }

Clock::time_point within(Job const& job, std::chrono::milliseconds more = {}) {
  return job.timeout.count() == 0 ? Clock::time_point::max() : Clock::now() + job.timeout + more;
}

// Process 0.
class Host {
 public:
  Host(Job& job, TextChannel& channel)
      : job_(job), channel_(channel), guests_(job.processes), deadline_(within(job)) {}

  void invite() try {
    hear([](Guest const& guest) { return guest.here; }, "made this call");
    auto const mine = host_identity(job_);
    auto const others = std::span(guests_).subspan(1);
    bool const one_host =
        std::ranges::all_of(others, [&](Guest const& guest) { return guest.host == mine; });
    auto hosts = one_host ? std::vector<std::string>() : own_addresses();
    hosts.emplace_back("127.0.0.1");  // tried too: MESHPOST_NODE may separate processes
    auto listener = listen_at(one_host ? "127.0.0.1:0" : "0.0.0.0:0");
    auto addresses = hosts;
    for (auto& address : addresses) address += fmt::format(":{}", port_of(listener));
    job_.rendezvous = one_host ? addresses.front() : agree_on(addresses);
    job_.secret = Secret(random_bytes()).hex();
    job_.listener = listener.release();
    tell_all(Says::go, {job_.rendezvous, job_.secret});
  } catch (Error const& error) {
    tell_all(Says::refusal, {wire::pack(error)});
    throw;
  }

 private:
  struct Guest {
    bool here = false;  // and waiting
    u64 call = 0;
    std::string host = {};
    std::string reached = {};  // a '1' for each address that it reaches; empty: not said yet
  };

  void hear(std::function<bool(Guest const&)> const& holds, char const* what) {
    auto const others = std::span(guests_).subspan(1);
    while (!std::ranges::all_of(others, holds)) {
      if (auto const received = channel_.next()) {
        if (auto message = Message::unpack(*received)) take(received->from, std::move(*message));
        else foreign_ = received->from;  // reported below, when the processes that come can be told
      } else if (Clock::now() >= deadline_) {
        if (foreign_) refuse_foreign(*foreign_);
        std::vector<u32> missing;
        for (u32 process = 1; process < guests_.size(); ++process)
          if (!holds(guests_[process])) missing.push_back(process);
        throw Error(Kind::deadline, operation,
                    fmt::format("{} of {} processes of the communicator {} within {:.3g} s; "
                                "missing: {}",
                                guests_.size() - missing.size(), guests_.size(), what,
                                seconds(job_.timeout), fmt::join(missing, ", ")),
                    "let all of them call options_over(); raise MESHPOST_START_DEADLINE (seconds) "
                    "if they come late");
      } else {
        std::this_thread::sleep_for(pause);
      }
    }
    if (foreign_) refuse_foreign(*foreign_);
  }

  void take(int from, Message message) {
    auto& guest = guests_[static_cast<u32>(from)];
    if (message.says == Says::hello && message.texts.size() == 1) {
      guest = {.call = message.call, .host = std::move(message.texts[0])};  // its last call counts
      channel_.send(from, Message{guest.call, Says::still_there, {}}.pack());
    }
    if (message.call != guest.call) return;
    if (message.says == Says::here) guest.here = true;
    if (message.says == Says::reached && message.texts.size() == 1)
      guest.reached = std::move(message.texts[0]);
  }

  std::string agree_on(std::vector<std::string> const& addresses) {
    tell_all(Says::try_these, addresses);
    hear([](Guest const& guest) { return !guest.reached.empty(); }, "tried process 0's addresses");
    for (u32 one = 0; one < addresses.size(); ++one)
      if (std::ranges::all_of(std::span(guests_).subspan(1), [&](Guest const& guest) {
            return one < guest.reached.size() && guest.reached[one] == '1';
          }))
        return addresses[one];
    std::string who;
    for (u32 process = 1; process < guests_.size(); ++process)
      if (guests_[process].reached.find('1') == std::string::npos)
        who += fmt::format("; process {} reaches none", process);
    throw Error(Kind::bad_environment, operation,
                fmt::format("no address of process 0's host is reached by all: {}{}",
                            fmt::join(addresses, ", "), who),
                "let the hosts connect to each other by TCP, at any port (a firewall?)");
  }

  void tell_all(Says what, std::vector<std::string> const& texts) {
    for (u32 process = 1; process < guests_.size(); ++process)
      if (guests_[process].here)
        channel_.send(static_cast<int>(process),
                      Message{guests_[process].call, what, texts}.pack());
  }

  Job& job_;
  TextChannel& channel_;
  std::vector<Guest> guests_;
  Clock::time_point deadline_;
  std::optional<int> foreign_;  // the process that sent a foreign message
};

std::string try_all(std::vector<std::string> const& addresses) {
  std::string reached;
  for (auto const& address : addresses) reached += answers(address, try_timeout) ? '1' : '0';
  return reached;
}

// The other processes.
void be_invited(Job& job, TextChannel& channel) {
  u64 const call = u64{std::random_device()()} << 32 | std::random_device()();
  channel.send(0, Message{call, Says::hello, {host_identity(job)}}.pack());
  auto deadline = within(job);
  while (Clock::now() < deadline) {
    auto const received = channel.next();
    if (!received) {
      std::this_thread::sleep_for(pause);
      continue;
    }
    auto unpacked = Message::unpack(*received);
    if (!unpacked) refuse_foreign(received->from);
    auto& message = *unpacked;
    if (message.call != call) continue;
    deadline = within(job, verdict_timeout);  // process 0 is there, and will send a verdict
    if (message.says == Says::still_there) channel.send(0, Message{call, Says::here, {}}.pack());
    if (message.says == Says::refusal && message.texts.size() == 1)
      throw wire::unpack_error(message.texts[0]);
    if (message.says == Says::try_these)
      channel.send(0, Message{call, Says::reached, {try_all(message.texts)}}.pack());
    if (message.says == Says::go && message.texts.size() == 2) {
      job.rendezvous = std::move(message.texts[0]);
      job.secret = std::move(message.texts[1]);
      return;
    }
  }
  throw Error(Kind::deadline, operation,
              fmt::format("process 0 of the communicator did not answer within {:.3g} s",
                          seconds(job.timeout)),
              "let all processes of the communicator call options_over(); see the log of "
              "process 0");
}

}  // namespace

Job meet_over(MPI_Comm communicator) {
  int processes = 0, process = 0;
  MPI_Comm_size(communicator, &processes);
  MPI_Comm_rank(communicator, &process);
  Job job;
  job.process = static_cast<u32>(process);
  job.processes = static_cast<u32>(processes);
  job.launcher = "MPI";
  job.overlaps = true;
  if (char const* const node = std::getenv("MESHPOST_NODE")) job.node = node;
  auto const config = Config::from_environment();
  job.timeout = config.start;
  job.silence = config.peer_deadline;
  if (job.alone()) return job;
  TextChannel channel(communicator);
  if (process == 0) Host(job, channel).invite();
  else be_invited(job, channel);
  return job;
}

}  // namespace meshpost
