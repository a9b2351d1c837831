#include "rma/windows/far_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

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

Error gone(ProcessGroup const& group, u32 process, std::string operation) {
  return {Kind::peer_lost, std::move(operation),
          fmt::format("{} has destroyed this World, or freed the window, already",
                      group.processes().name(process)),
          "keep both until no process uses them any more"};
}

// `text`: a write before it, or nothing.
void ask_to_raise(ProcessGroup const& group, u32 process, std::string text,
                  Question const& question, std::string operation) {
  text += text_of(question);
  auto const reply = group.processes().ask(group.channel(), process, text);
  if (reply.empty()) throw gone(group, process, std::move(operation));
}

constexpr u64 most_at_once = u64{8} << 20;  // bytes of a write

}  // namespace

FarMemory::FarMemory(WorldMemory const& memory, RunQueue& runs, HostEndpoint& endpoint,
                     EndpointCounters& endpoints, Agreement const& agreement)
    : WorldMemory(memory),
      runs_(runs),
      endpoint_(endpoint),
      endpoints_(endpoints),
      agreement_(agreement) {
  if (!group_.alone())
    group_.processes().answer(
        group_.channel(), [this](u32, std::string const& question) { return answer(question); });
}

FarMemory::~FarMemory() {
  if (!group_.alone()) group_.processes().answer(group_.channel(), nullptr);
}

void FarMemory::transfer(GlobalAddress address, void* target, void const* source, u64 bytes) const {
  u32 const process = layout_.processes[address.device];
  for (u64 at = 0; at < bytes; at += most_at_once) {
    u64 const size = std::min(most_at_once, bytes - at);
    auto text = text_of({.action = target ? Action::read : Action::write,
                         .device = address.device,
                         .offset = address.offset + at,
                         .bytes = size});
    if (!target) text.append(static_cast<char const*>(source) + at, size);
    auto const reply = group_.processes().ask(group_.channel(), process, text);
    if (reply.size() != 1 + (target ? size : 0))
      throw gone(group_, process, source ? "write" : "read");
    if (target) std::memcpy(static_cast<char*>(target) + at, reply.data() + 1, size);
  }
}

std::string FarMemory::text_before(u32 process, BytesBefore const& before) const {
  if (before.bytes == 0) return {};
  u32 const device = before.address.device;
  if (layout_.processes[device] != process || before.bytes > most_at_once) {
    transfer(before.address, nullptr, before.source, before.bytes);
    return {};
  }
  auto text = text_of({.action = Action::write,
                       .device = device,
                       .offset = before.address.offset,
                       .bytes = before.bytes});
  return text.append(static_cast<char const*>(before.source), before.bytes);
}

void FarMemory::raise(u32 device, via::Signal const& count, BytesBefore const& before) const {
  u32 const process = layout_.processes[device];
  ask_to_raise(group_, process, text_before(process, before),
               {.signal = count, .action = Action::raise, .device = device, .run = runs_.runs()},
               "notify");
}

void FarMemory::raise(WindowInfo const& window, StreamId stream, Tag tag,
                      BytesBefore const& before) const {
  u32 const process = layout_.processes[stream.device];
  ask_to_raise(group_, process, text_before(process, before),
               {.action = Action::raise_stream,
                .device = stream.device,
                .window = window.number,
                .stream = stream.number,
                .tag = tag.value},
               "notify a stream");
}

void FarMemory::raise(WindowInfo const& window, HostId host, Tag tag,
                      BytesBefore const& before) const {
  u32 const process = layout_.processes[host.device];
  ask_to_raise(group_, process, text_before(process, before),
               {.action = Action::raise_host,
                .device = host.device,
                .window = window.number,
                .tag = tag.value},
               "notify a host");
}

// Runs of all processes end together: a run that has ended for the sender has ended here too.
std::string FarMemory::answer(std::string_view text) {
  Question question;
  if (text.size() < sizeof question) return {};
  std::memcpy(&question, text.data(), sizeof question);
  if (!layout_.owns(question.device)) return {};
  bool const reads = question.action == Action::read, writes = question.action == Action::write;
  if (writes && text.size() - sizeof question < question.bytes) return {};
  auto const behind = text.substr(sizeof question + (writes ? question.bytes : 0));
  if (!writes && !behind.empty()) return {};
  if (question.action == Action::raise_stream || question.action == Action::raise_host) {
    bool const raised = question.action == Action::raise_host
                            ? endpoints_.raise(question.window, Tag{question.tag})
                            : endpoints_.raise(question.window, {question.device, question.stream},
                                               Tag{question.tag});
    return raised ? std::string{'\1'} : std::string{};
  }
  if (question.action == Action::raise) {
    auto const& count = question.signal;
    char* const word =
        addresses_.memory({question.device, count.at()}, count.distance() + sizeof(u32));
    if (!word || count.at() % sizeof(u32) != 0) return {};
    endpoint_.raise_for_another(
        question.device - layout_.first_device, count.moved_to(reinterpret_cast<u64>(word)),
        agreement_.ranks_meet() && static_cast<i32>(question.run - runs_.runs()) < 0);
    return {'\1'};
  }
  if (!reads && !writes) return {};
  char* const at = addresses_.memory({question.device, question.offset}, question.bytes);
  if (!at) return {};
  Device& owner = layout_.own(question.device);
  std::string reply(1 + (reads ? question.bytes : 0), '\1');
  if (writes) owner.write(at, text.data() + sizeof question, Bytes{question.bytes});
  else owner.read(reply.data() + 1, at, Bytes{question.bytes});
  return behind.empty() ? reply : answer(behind);
}

}  // namespace meshpost::detail
