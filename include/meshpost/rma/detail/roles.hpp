#pragma once
#include "meshpost/rma/roles.hpp"

// clang-format off
// Roles by ticket.
//
// Why the receiver may be any rank of the device: a notification goes to a counter of one rank, and
// nobody knows which rank will draw the receiving task. So messages are announced by words that all
// ranks of the device share (their parts of the window lie on each other). Rank::put_value stores
// such a word behind the message, and any rank of the device may poll it by Rank::wait_until.
//
// Why nothing waits for ever (T tasks a step: 1 receives, S send, I interior, U unpack; R ranks on
// the device). A rank waits in four places: in the constructor's barrier, for messages, for the
// announcement before an unpacking task, and in the device's barrier at the end of a step.
//  1. On each device, all S + I early tasks of a step that it has begun are done, whatever its
//     neighbours do. If R = 1, they have lower tickets than the receiving task. Otherwise at most
//     one rank receives. Each other rank draws on. It draws an unpacking task or none only after
//     all early tasks were drawn, by ranks that do not wait in them. R >= 2, so there is such a
//     rank. It matters neither in which order ranks come, nor if one comes late.
//  2. By induction over steps: all devices begin step 1. If all begin step s, all send all messages
//     of step s (1). So each receiving task ends and is announced, each unpacking task ends, each
//     rank draws a ticket without a task, the barrier is passed, and the device begins step s + 1.
//     (A receiving task that waits for a message that nobody sends is an error of the program. The
//     wait is one of Rank, so it ends with a report, as does a failure elsewhere.)
//
// Why tickets of a step start at 0 without a reset: each rank draws until it gets a ticket without
// a task, once a step. So exactly count() + R tickets are drawn in each step. The barrier separates
// those of different steps. Behind it all ranks know the first ticket of the next step. For each
// kernel the constructor clears all words, those too that a failed run has left. Its barrier of the
// world comes before the first ticket and before any neighbour's first word.
//
// Why the rank that sends a message has what all ranks packed for it (PTX memory model; C++ on CPU
// devices):
//  3. All threads of a packing rank store, then meet (Rank::sync). This orders the stores before
//     what thread 0 does next.
//  4. Thread 0 adds to the counter of the message's parts by fetch_add_device: acquire and release,
//     at a scope that includes all ranks of the device. The release is cumulative over 3.
//  5. All adds of a step are read-modify-writes, so the last one reads from the release sequences
//     of all others. Its acquire synchronises with all of them.
//  6. from_first_thread() orders the sender's other threads after its thread 0. Then they read what
//     was packed, and put it. direct/write.hpp has the rest of the way; its fence is cumulative.
//  7. The last rank sets the counter back. The next add to it is in the next step, behind the
//     barrier of the device.
// Without 3 or the release in 4, the counter could be seen before the packed bytes; the sender
// would put old bytes. It is the same pattern as the arrival at a barrier (barrier.hpp).
//
// Why a word of an older step is not taken for one of this step, and no word is missed: a word has
// the number of its step, and is awaited by equality. Different ranks may send the message of
// different steps, and messages of different ranks have no order. So steps use two words in turn.
// A neighbour stores its word of step s + 2 after it has received from this device in step s + 1.
// That was sent behind the barrier at the end of step s here, when the word of step s was consumed.
// The same holds for buffers that take turns.
//
// Why tasks see the messages: the receiving rank has seen the words, by acquire (Rank::wait_until).
// Its put_value of the announcement releases that at the scope of the device, and wait_until of the
// unpacking ranks acquires it.
// clang-format on

namespace meshpost {

MESHPOST_FN inline RolesByTicket::RolesByTicket(Rank& self, RoleWords const& words,
                                                RoleTasks const& tasks)
    : self_(&self),
      words_(words),
      tasks_(tasks),
      places_{words.messages, self.local_size()},
      shared_(own_words(self, words)) {
  check(tasks);
  if (self.local_id() == 0) {
    self.each(places_.count(), [&](u64 i) { shared_[i] = 0; });
    self.sync();
    if (self.thread() == 0) {
      u32 const mine[] = {tasks.messages, tasks.packers, tasks.interior, tasks.unpackers};
      for (u32 i = 0; i < 4; ++i) *word(places_.agreed + i) = mine[i];
    }
  }
  self.barrier();
  u32 const* const agreed = word(places_.agreed);
  if (agreed[0] != tasks.messages || agreed[1] != tasks.packers || agreed[2] != tasks.interior ||
      agreed[3] != tasks.unpackers)
    self.fail(Operation::roles, Fault::misuse, 0, 0, 0,
              "RoleTasks differ from those of the first rank of this device; give equal numbers to "
              "all ranks of a device");
}

MESHPOST_FN inline LocalSpan<u32> RolesByTicket::own_words(Rank& self, RoleWords const& words) {
  u32 const made_by = words.words.info().world, world = self.state().world;
  if (made_by != world) self.fail(Operation::roles, Fault::foreign_window, made_by, world);
  return words.words.local(self);
}

MESHPOST_FN inline void RolesByTicket::check(RoleTasks const& tasks) const {
  constexpr auto operation = Operation::roles;
  if (shared_.size() < places_.count())
    self_->fail(operation, Fault::misuse, 0, 0, 0,
                "RoleWords are too small for their messages; make them with role_words()");
  if (tasks.messages > words_.messages)
    self_->fail(operation, Fault::argument, tasks.messages, 0, words_.messages,
                "RoleTasks::messages");
  if (tasks.messages != 0 && tasks.packers == 0)
    self_->fail(operation, Fault::argument, 0, 1, RoleTasks::most / tasks.messages,
                "RoleTasks::packers");
  if (tasks.count() > RoleTasks::most)
    self_->fail(operation, Fault::argument, tasks.count(), 1, RoleTasks::most,
                "the number of all RoleTasks");
}

MESHPOST_FN inline void RolesByTicket::check_tag(Tag tag) const {
  if (words_.messages == 0)
    self_->fail(Operation::roles, Fault::misuse, 0, 0, 0,
                "RoleWords have no room for messages; give role_words() their number");
  if (tag.value >= words_.messages)
    self_->fail(Operation::roles, Fault::argument, tag.value, 0, words_.messages - 1, "tag");
}

/// The value of thread 0, by all threads; a meeting of them. The two words take turns. Thread 0
/// stores into one again behind a further meeting, to which the others come after they have read.
MESHPOST_FN inline u32 RolesByTicket::from_first_thread(u32 value) {
  u32* const passed = word(places_.passed() + 2 * self_->local_id() + passed_++ % 2);
  if (self_->thread() == 0) *passed = value;
  self_->sync();
  return *passed;
}

MESHPOST_FN inline RoleTask RolesByTicket::next() {
  Rank& self = *self_;
  if (role_ == HaloRole::send)
    self.fail(
        Operation::roles, Fault::misuse, 0, 0, 0,
        "a task of HaloRole::send has ended without packed(); call it when the part is packed");
  if (role_ == HaloRole::receive)
    self.put_value(words_.words.at(self.id(), places_.announced), step_);
  u32 drawn = 0;
  if (self.thread() == 0)
    drawn = memory::fetch_add_device(word(places_.tickets), 1) - first_ticket_;
  auto const receive =
      self.local_size() == 1 ? ReceiveTicket::behind_interior : ReceiveTicket::first;
  RoleTask const task = tasks_.at(from_first_thread(drawn), receive);
  role_ = task.role;
  if (task.role == HaloRole::unpack)
    self.wait_until(shared_.subspan(places_.announced, 1), Compare::equal, step_);
  if (task.role == HaloRole::none) {
    self.barrier(self.device_communicator());
    first_ticket_ += static_cast<u32>(tasks_.count()) + self.local_size();
    ++step_;
  }
  return task;
}

MESHPOST_FN inline bool RolesByTicket::packed(RoleTask const& task) {
  if (role_ != HaloRole::send)
    self_->fail(Operation::roles, Fault::misuse, 0, 0, 0,
                "packed() was called outside of a task of HaloRole::send, or twice in one");
  if (task.index >= tasks_.messages)
    self_->fail(Operation::roles, Fault::argument, task.index, 0, tasks_.messages - 1,
                "the message of the task");
  role_ = HaloRole::none;
  self_->sync();
  u32 last = 0;
  if (self_->thread() == 0) {
    u32* const parts = word(places_.parts + task.index);
    last = memory::fetch_add_device(parts, 1) + 1 == tasks_.packers ? 1 : 0;
    if (last != 0) memory::store_relaxed(parts, 0);
  }
  return from_first_thread(last) != 0;
}

MESHPOST_FN inline void RolesByTicket::notify(RankId target, Tag tag) {
  check_tag(tag);
  self_->put_value(words_.words.at(target, places_.arrived(step_) + tag.value), step_);
}

MESHPOST_FN inline void RolesByTicket::wait(Tag tag, RankId expected) {
  if (role_ != HaloRole::receive)
    self_->fail(
        Operation::roles, Fault::misuse, 0, 0, 0,
        "wait() was called outside of the task of HaloRole::receive; others must not wait for "
        "messages, which would keep this device from sending");
  check_tag(tag);
  self_->wait_until(shared_.subspan(places_.arrived(step_) + tag.value, 1), Compare::equal, step_,
                    expected);
}

}  // namespace meshpost
