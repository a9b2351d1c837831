#include "rma/windows/far_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <type_traits>

#include "base/caught.hpp"
#include "base/host_hooks.hpp"
#include "world/wire.hpp"

namespace meshpost::detail {
namespace {

enum class Action : u32 { read, write, raise, raise_stream, raise_host };

// Behind the bytes of a write may stand another question, which is answered then.
struct Question {
  via::Signal signal{};  // raise
  Action action{};
  u32 device = 0;
  u64 offset = 0, bytes = 0;
  u32 run = 0;  // raise: the last run that the sender has begun
  // raise_stream, raise_host:
  u32 window = 0, stream = 0, tag = 0;
  u64 unused = 0;
};
static_assert(std::has_unique_object_representations_v<Question>);  // all its bytes are sent

std::string text_of(Question const& question) {
  return {reinterpret_cast<char const*>(&question), sizeof question};
}

std::string text_of_write(GlobalAddress address, void const* source, u64 bytes) {
  auto text = text_of({.action = Action::write,
                       .device = address.device,
                       .offset = address.offset,
                       .bytes = bytes});
  return text.append(static_cast<char const*>(source), bytes);
}

Error gone(ProcessGroup const& group, u32 process, std::string operation) {
  return {Kind::peer_lost, std::move(operation),
          fmt::format("{} has destroyed this World, or freed the window, already",
                      group.processes().name(process)),
          "keep both until no process uses them any more"};
}

// Its errors say what was asked for.
template <class Call>
auto named(std::string const& operation, Call&& call) {
  try {
    return call();
  } catch (Error const& error) {
    throw Error(error.kind(), operation, error.cause(), error.remedy());
  }
}

// The first byte of an answer.
constexpr char done = '\1', failed = '\2';

constexpr u64 most_at_once = u64{8} << 20;  // written or read without a network engine

}  // namespace

FarMemory::FarMemory(WorldMemory const& memory, RunQueue& runs, HostEndpoint& endpoint,
                     EndpointCounters& endpoints, Agreement const& agreement,
                     std::string const& engine)
    : WorldMemory(memory),
      runs_(runs),
      endpoint_(endpoint),
      endpoints_(endpoints),
      agreement_(agreement),
      questions_(group_, [this](u32, std::string_view question) { return answer(question); }) {
  if (layout_.far_processes)
    questions_.join("World", engine, [this](u32 process) {
      return group_.far(process) || layout_.far_from(process);
    });
}

Questions::Begun FarMemory::begin(std::string const& operation, u32 process,
                                  std::string question) const {
  return named(operation, [&] { return questions_.begin(process, std::move(question)); });
}

std::string FarMemory::end(std::string const& operation, Questions::Begun begun) const {
  u32 const process = begun.process;
  auto reply = named(operation, [&] { return questions_.end(std::move(begun)); });
  if (reply.empty()) throw gone(group_, process, operation);
  if (reply.front() == failed)
    throw group_.of_process(process, wire::unpack_error(std::string_view(reply).substr(1)));
  return reply;
}

// Bytes of a write, with a question behind it, or of a read.
u64 FarMemory::most_in_question(u32 process) const {
  u64 const most = questions_.most(process);
  return most == 0 ? most_at_once : most - 2 * sizeof(Question);
}

void FarMemory::transfer(GlobalAddress address, void* target, void const* source, u64 bytes) const {
  u32 const process = layout_.processes[address.device];
  std::string const operation = target ? "read" : "write";
  u64 const piece = most_in_question(process);
  std::deque<Questions::Begun> under_way;
  u64 taken = 0;
  auto const take_first = [&] {
    auto begun = std::move(under_way.front());
    under_way.pop_front();
    auto const reply = end(operation, std::move(begun));
    u64 const size = std::min(piece, bytes - taken);
    if (reply.size() != 1 + (target ? size : 0)) throw gone(group_, process, operation);
    if (target) std::memcpy(static_cast<char*>(target) + taken, reply.data() + 1, size);
    taken += size;
  };
  try {
    for (u64 at = 0; at < bytes; at += piece) {
      u64 const size = std::min(piece, bytes - at);
      GlobalAddress const from{address.device, address.offset + at};
      auto text = target ? text_of({.action = Action::read,
                                    .device = from.device,
                                    .offset = from.offset,
                                    .bytes = size})
                         : text_of_write(from, static_cast<char const*>(source) + at, size);
      under_way.push_back(begin(operation, process, std::move(text)));
      while (!under_way.empty() && (under_way.size() == most_under_way || !under_way.back().asked))
        take_first();
    }
    while (!under_way.empty()) take_first();
  } catch (...) {
    // None may be carried out after this call: its memory may then be another window's.
    for (auto const& begun : under_way) questions_.drop(begun);
    throw;
  }
}

Questions::Begun FarMemory::begin_write(GlobalAddress address, void const* source,
                                        u64 bytes) const {
  return begin("write", layout_.processes[address.device], text_of_write(address, source, bytes));
}

void FarMemory::end_write(Questions::Begun begun) const {
  u32 const process = begun.process;
  if (end("write", std::move(begun)).size() != 1) throw gone(group_, process, "write");
}

// Empty: the bytes have been written by a question of their own.
std::string FarMemory::text_before(u32 process, BytesBefore const& before) const {
  if (before.bytes == 0) return {};
  u32 const device = before.address.device;
  if (layout_.processes[device] != process || before.bytes > most_in_question(process)) {
    transfer(before.address, nullptr, before.source, before.bytes);
    return {};
  }
  return text_of_write(before.address, before.source, before.bytes);
}

void FarMemory::ask_to_raise(std::string const& operation, u32 process, BytesBefore const& before,
                             std::string_view question) const {
  auto text = text_before(process, before);
  text += question;
  end(operation, begin(operation, process, std::move(text)));
}

void FarMemory::raise(u32 device, via::Signal const& count, BytesBefore const& before) const {
  ask_to_raise(
      "notify", layout_.processes[device], before,
      text_of({.signal = count, .action = Action::raise, .device = device, .run = runs_.runs()}));
}

void FarMemory::raise(WindowInfo const& window, StreamId stream, Tag tag,
                      BytesBefore const& before) const {
  ask_to_raise("notify a stream", layout_.processes[stream.device], before,
               text_of({.action = Action::raise_stream,
                        .device = stream.device,
                        .window = window.number,
                        .stream = stream.number,
                        .tag = tag.value}));
}

void FarMemory::raise(WindowInfo const& window, HostId host, Tag tag,
                      BytesBefore const& before) const {
  ask_to_raise("notify a host", layout_.processes[host.device], before,
               text_of({.action = Action::raise_host,
                        .device = host.device,
                        .window = window.number,
                        .tag = tag.value}));
}

// Two threads answer. The asker of a notification has heard before that its bytes are there, but
// another thread may have written them. So each answer acquires what those before it have written.
std::string FarMemory::answer(std::string_view text) {
  answers_.fetch_add(1, std::memory_order_acq_rel);
  try {
    hooks::at("answer another process");
    auto reply = carry_out(text, false);
    answers_.fetch_add(1, std::memory_order_acq_rel);
    return reply;
  } catch (...) {
    constexpr u64 readable = 1000;  // so that any engine can send it
    auto const error = caught("serve another process");
    return failed +
           wire::pack(Error(error.kind(), error.operation().substr(0, readable),
                            error.cause().substr(0, readable), error.remedy().substr(0, readable)));
  }
}

// Runs of all processes end together: a run that has ended for the sender has ended here too.
std::string FarMemory::carry_out(std::string_view text, bool behind_another) {
  Question question;
  if (text.size() < sizeof question) return {};
  std::memcpy(&question, text.data(), sizeof question);
  if (!layout_.owns(question.device)) return {};
  bool const reads = question.action == Action::read, writes = question.action == Action::write;
  if (writes && text.size() - sizeof question < question.bytes) return {};
  auto const behind = text.substr(sizeof question + (writes ? question.bytes : 0));
  if ((!writes || behind_another) && !behind.empty()) return {};
  if (question.action == Action::raise_stream || question.action == Action::raise_host) {
    bool const raised = question.action == Action::raise_host
                            ? endpoints_.raise(question.window, Tag{question.tag})
                            : endpoints_.raise(question.window, {question.device, question.stream},
                                               Tag{question.tag});
    return raised ? std::string{done} : std::string{};
  }
  if (question.action == Action::raise) {
    auto const& count = question.signal;
    char* const word =
        addresses_.memory({question.device, count.at()}, count.distance() + sizeof(u32));
    if (!word || count.at() % sizeof(u32) != 0) return {};
    endpoint_.raise_for_another(
        question.device - layout_.first_device, count.moved_to(reinterpret_cast<u64>(word)),
        agreement_.ranks_meet() && static_cast<i32>(question.run - runs_.runs()) < 0);
    return {done};
  }
  if ((!reads && !writes) || question.bytes > most_at_once) return {};
  char* const at = addresses_.memory({question.device, question.offset}, question.bytes);
  if (!at) return {};
  Device& owner = layout_.own(question.device);
  std::string reply(1 + (reads ? question.bytes : 0), done);
  if (writes) owner.write(at, text.data() + sizeof question, Bytes{question.bytes});
  else owner.read(reply.data() + 1, at, Bytes{question.bytes});
  return behind.empty() ? reply : carry_out(behind, true);
}

}  // namespace meshpost::detail
