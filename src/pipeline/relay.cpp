#include "pipeline/relay.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/thread.hpp"
#include "copy/job/state.hpp"
#include "world/wire.hpp"

namespace meshpost::pipelining {

std::string Notice::pack() const {
  wire::Packer packer;
  packer.value(run).value(stage).value(level).value(static_cast<u8>(reverse)).value(chunk);
  return packer.value(static_cast<u8>(failed)).take();
}

Notice Notice::unpack(std::string const& bytes) {
  wire::Unpacker unpacker(bytes);
  Notice notice;
  notice.run = unpacker.value<u64>();
  notice.stage = unpacker.value<Stage>();
  notice.level = unpacker.value<u32>();
  notice.reverse = unpacker.value<u8>() != 0;
  notice.chunk = unpacker.value<u64>();
  notice.failed = unpacker.value<u8>() != 0;
  return notice;
}

void Relay::start(Board& board, u64 run, bool everybody) {
  board_ = &board;
  run_ = run;
  everybody_ = everybody;
  failed_elsewhere_ = false;
  over_ = false;
  if (group_.alone()) return;
  listener_ = start_thread("hear of a pipeline's other processes", [this] { listen(); });
}

bool Relay::stop() {
  over_ = true;
  if (listener_.joinable()) listener_.join();
  return failed_elsewhere_;
}

void Relay::tell(u32 leg, u64 chunk) const {
  auto const& [stage, level] = schedule_.legs[leg];
  Notice const notice{run_, stage, level, schedule_.shape.reverse, chunk, false};
  if (everybody_) return send(Processes::everyone, notice);
  for (u32 const process : distribution_.listeners(leg)) send(process, notice);
}

void Relay::tell_failure() const {
  if (group_.alone()) return;
  Notice notice;
  notice.run = run_, notice.failed = true;
  send(Processes::everyone, notice);
}

void Relay::listen() {
  auto& processes = group_.processes();
  constexpr auto timeout = std::chrono::milliseconds(2);  // until it sees that the run is over
  try {
    while (!over_ && !failed_elsewhere_) {
      processes.wait_for_messages(group_.channel(), timeout);
      for (auto const& message : processes.take_messages(group_.channel())) take(message);
      if (auto const loss = processes.lost()) throw processes.lost_error("run a pipeline", *loss);
    }
  } catch (...) {
    if (board_->fail("hear of other processes")) failed_elsewhere_ = true;
  }
}

void Relay::take(Processes::Message const& message) {
  auto const notice = Notice::unpack(message.bytes);
  if (notice.run != run_) return;  // late: from a run that is over
  auto const name = group_.processes().name(message.from);
  if (notice.failed)
    throw Error(Kind::kernel_failed, "run a pipeline", fmt::format("it has failed in {}", name),
                "see its messages");
  auto const found = std::ranges::find(schedule_.legs, Leg{notice.stage, notice.level});
  auto const leg = static_cast<u32>(found - schedule_.legs.begin());
  bool const known = found != schedule_.legs.end() && notice.chunk < schedule_.shape.chunks &&
                     notice.reverse == schedule_.shape.reverse &&
                     distribution_.runners[leg] == message.from;
  if (!known)
    throw Error(Kind::misuse, "run a pipeline",
                fmt::format("{} reports {}^{} of chunk {}{}, which it does not run", name,
                            to_string(notice.stage), notice.level, notice.chunk,
                            notice.reverse ? " in reverse" : ""),
                "make the same pipeline in all processes");
  job_->state().see_arrivals();
  board_->post(leg, notice.chunk, {});
}

}  // namespace meshpost::pipelining
