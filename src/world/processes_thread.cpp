// The thread of Processes: reads and writes, and notices which processes are gone.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <utility>
#include <vector>

#include "base/host_hooks.hpp"
#include "meshpost/base/events.hpp"
#include "world/join.hpp"
#include "world/processes_state.hpp"

namespace meshpost {
// True if everything was said that had to be said before the end. If a connection is closed with
// unread bytes in it, the other end loses bytes that it has not received yet. So say that nothing
// will follow, and read on until the other end closes too.
bool Processes::Implementation::is_done() {
  if (!closing_) return false;
  std::size_t output = 0;
  bool connected = false;
  for (auto const& line : lines_) {
    output += line ? line->output() : 0;
    connected |= line != nullptr;
  }
  if (output < farewell_.output) farewell_.timeout.renew();
  farewell_.output = output;
  if (output == 0 && !std::exchange(farewell_.finished, true))
    for (auto const& line : lines_)
      if (line) line->finish();
  return !connected || farewell_.timeout.ends();
}

void Processes::Implementation::work() {
  auto const most_pause = beat_every_ / 2;
  std::unique_lock lock(mutex_);
  while (!is_done()) {
    std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
    for (auto const& line : lines_)
      if (line)
        polled.push_back(
            {line->socket(), static_cast<short>(POLLIN | (line->has_output() ? POLLOUT : 0)), 0});
    lock.unlock();
    poll(polled.data(), polled.size(), static_cast<int>(most_pause.count()));
    hooks::at("hear other processes");
    lock.lock();
    eventfd_t ignored = 0;
    eventfd_read(wake_.get(), &ignored);
    for (u32 line = 0; line < lines_.size(); ++line)
      if (lines_[line]) serve(line);
    look_after_lines();
    say_who_waits();
    if (auto const texts = warnings(); !texts.empty()) {
      lock.unlock();  // a warning goes to the user's code
      for (auto const& text : texts) warn(text);
      lock.lock();
    }
  }
}

void Processes::Implementation::serve(u32 process) {
  auto& line = *lines_[process];
  line.flush();  // if that fails, receive() says so, after the frames that came before
  bool stands = line.receive();
  std::string how = "its connection ended without a farewell: it was killed, crashed, or ended";
  if (!stands && !line.why().empty()) how = fmt::format("its connection broke: {}", line.why());
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
    case wire::Type::beat:
      silent_.clear();
      while (!unpacker.at_end()) {
        u32 const process = unpacker.value<u32>() % job_.processes;
        silent_[process] = unpacker.value<u32>();
      }
      break;
    case wire::Type::all: {
      Exchanges::Outcome outcome;
      for (u32 i = 0; i < job_.processes; ++i) outcome.parts.push_back(unpacker.text());
      outcomes_[{header.channel, header.sequence}] = std::move(outcome);
      break;
    }
    case wire::Type::mismatch:
      outcomes_[{header.channel, header.sequence}].mismatch = frame.bytes;
      break;
    case wire::Type::awaited:
      awaited_[header.channel] = {header.sequence, unpacker.value<u32>()};
      break;
    case wire::Type::message:
      messages_[header.channel].push_back({header.process, frame.bytes});
      break;
    case wire::Type::ask: take_question(header.process, header, frame.bytes); break;
    case wire::Type::reply: replies_[header.sequence] = frame.bytes; break;
    case wire::Type::lost: {
      bool const left = unpacker.value<u8>() != 0;
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
      auto part = unpacker.text();
      auto const waiters = unpacker.value<Waiters>();
      bring(from, {header.channel, header.sequence}, std::move(operation), std::move(part), waiters,
            unpacker.value<u32>());
      break;
    }
    case wire::Type::message: deliver(from, header.process, header.channel, frame.bytes); break;
    case wire::Type::ask: route_question(from, header, frame.bytes); break;
    case wire::Type::reply: route_reply(header, frame.bytes); break;
    case wire::Type::leave: mark_gone({from, true, "it has ended"}); break;
    default: throw Error(Kind::bad_argument, "read a message", "it is not for process 0", "");
  }
}

void Processes::Implementation::bring(u32 process, Exchanges::Key key, std::string operation,
                                      std::string part, Waiters waiters, u32 step) {
  auto outcome =
      exchanges_.bring(key, process, std::move(operation), std::move(part), waiters, step);
  if (!outcome) return;
  u64 size = 0;
  for (auto const& each : outcome->parts) size += each.size() + sizeof(u64);
  if (size > wire::most)
    *outcome = {{},
                fmt::format("the parts of all processes have {} bytes together; there may be {}",
                            size, wire::most)};
  wire::Packer packer(size);
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
    if (process == 0) messages_[channel].push_back({from, bytes});
    else send(process, {.type = wire::Type::message, .process = from, .channel = channel}, bytes);
  }
  changed_.notify_all();
}

void Processes::Implementation::mark_gone(Loss const& loss) {
  if (gone_[loss.process]) return;
  gone_[loss.process] = loss;
  if (loss.process == 0) silent_.clear();  // nobody tells this process any more
  if (!first_gone_) first_gone_ = loss;
  if (!loss.left && !lost_) lost_ = loss;
  auto const said = wire::Packer().value(u8{loss.left}).text(loss.how).take();
  // It may still live, and should know why nobody talks to it any more.
  if (hub() && !loss.left)
    send(loss.process, {.type = wire::Type::lost, .process = loss.process}, said);
  if (hub() || loss.process == 0) lines_[hub() ? loss.process : 0].reset();
  if (hub()) send_all({.type = wire::Type::lost, .process = loss.process}, said, loss.process);
  changed_.notify_all();
}

// Process 0 tells the others with each beat.
void Processes::Implementation::note_silence() {
  constexpr u32 beats = 3;
  wire::Packer packer;
  if (hub()) silent_.clear();
  for (u32 line = 0; line < lines_.size(); ++line) {
    auto const waited = silences_[line].waited();
    if (!lines_[line] || waited < beats * beat_every_) continue;
    if (!hub()) silent_.clear();  // process 0 is silent, so the rest is old
    auto const ms = static_cast<u32>(waited.count());
    silent_[line] = ms;
    packer.value(line).value(ms);
  }
  send_all({.type = wire::Type::beat}, hub() ? packer.take() : std::string(), job_.process);
}

std::vector<std::string> Processes::Implementation::silent() const {
  std::scoped_lock const lock(mutex_);
  std::vector<std::string> texts;
  for (auto const& [process, ms] : silent_)
    if (process != job_.process && !gone_[process])
      texts.push_back(fmt::format("{} has given no sign of life for {:.1f} s: it may be stopped",
                                  name_of(process), ms * 1e-3));
  return texts;
}

void Processes::Implementation::look_after_lines() {
  auto const now = Clock::now();
  if (now - beat_at_ >= beat_every_) {
    beat_at_ = now;
    note_silence();
  }
  for (u32 line = 0; line < lines_.size(); ++line)
    if (lines_[line] && silences_[line].ends(lines_[line]->heard(), now))
      mark_gone({line, false,
                 fmt::format("no sign of life for {}: it was stopped, or its host is out of reach",
                             silences_[line].text())});
}

void Processes::Implementation::say_who_waits() {
  for (auto const& one : exchanges_.held_up(Clock::now()))
    for (u32 const process : one.missing)
      if (process == 0) awaited_[one.key.first] = {one.key.second, one.step};
      else
        send(process,
             {.type = wire::Type::awaited, .channel = one.key.first, .sequence = one.key.second},
             wire::Packer().value(one.step).take());
}

std::vector<std::string> Processes::Implementation::warnings() {
  std::vector<std::string> texts;
  auto const overdue = exchanges_.overdue();
  if (first_gone_) return texts;  // those who wait have got an error
  for (auto const& one : overdue)
    texts.push_back(fmt::format("{} has waited {:.3g} s for process {}: all processes must call it",
                                one.operation, static_cast<double>(job_.silence.count()) * 1e-3,
                                fmt::join(one.missing, ", ")));
  return texts;
}

}  // namespace meshpost
