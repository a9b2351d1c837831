#pragma once
#include "meshpost/rma/rank.hpp"

#if !defined(__CUDACC_RTC__)
#include "meshpost/base/error.hpp"
#include "meshpost/rma/world.hpp"
#endif

// Ranks of a device that share its work on a halo exchange. In each step a rank draws one ticket
// after the other, and the ticket says what it does next.

namespace meshpost {

/// The tasks of a step, by what they do.
enum class HaloRole : u32 {
  none,      ///< all tasks of the step are done
  receive,   ///< waits for the messages of the neighbours; one task a step
  send,      ///< computes and packs a part of a message; the last one of a message sends it
  interior,  ///< work that needs no message of this step
  unpack     ///< work that needs the messages; all have arrived
};

/// A task that a rank has drawn.
struct RoleTask {
  HaloRole role = HaloRole::none;
  u32 index = 0;  ///< number of the message (send), or of the task among those of its role
  u32 part = 0;   ///< send: number of the part of its message
  MESHPOST_FN constexpr explicit operator bool() const { return role != HaloRole::none; }
};

/// The place of the receiving task among the tickets of a step.
enum class ReceiveTicket : u32 {
  first,           ///< other ranks of the device send meanwhile
  behind_interior  ///< for a rank that is alone on its device: it sends before it waits
};

/// The numbers of tasks of a device in each step. Devices may differ; ranks of a device may not.
struct RoleTasks {
  u32 messages = 0;   ///< that the device sends
  u32 packers = 1;    ///< tasks that pack a message, each a part; at least 1
  u32 interior = 0;   ///< tasks of HaloRole::interior
  u32 unpackers = 0;  ///< tasks of HaloRole::unpack

  static constexpr u64 most = u64{1} << 30;  ///< of all tasks

  MESHPOST_FN constexpr u64 sends() const { return u64{messages} * packers; }
  /// Of all roles.
  MESHPOST_FN constexpr u64 count() const { return 1 + sends() + interior + unpackers; }
  /// The task of a ticket. Tickets of a step count from 0; those from count() on get no task.
  MESHPOST_FN constexpr RoleTask at(u64 ticket, ReceiveTicket receive) const {
    u64 const early = sends() + interior;  // tasks that wait for nothing
    if (ticket == (receive == ReceiveTicket::first ? 0 : early)) return {HaloRole::receive, 0, 0};
    if (ticket > early) {
      u64 const index = ticket - early - 1;
      return index < unpackers ? RoleTask{HaloRole::unpack, static_cast<u32>(index), 0}
                               : RoleTask{};
    }
    if (receive == ReceiveTicket::first) --ticket;
    if (ticket >= sends()) return {HaloRole::interior, static_cast<u32>(ticket - sends()), 0};
    return {HaloRole::send, static_cast<u32>(ticket / packers), static_cast<u32>(ticket % packers)};
  }
};

/// Words that the ranks of each device share, for RolesByTicket. A handle, made by role_words(). A
/// kernel uses it for one RolesByTicket at a time.
struct RoleWords {
  Window<u32> words;
  u32 messages = 0;  ///< most that a device receives or sends in a step
};

namespace detail {
/// Places in a device's part of RoleWords. Words that many ranks poll or add to have a line each.
struct RolePlaces {
  u32 messages, ranks;

  static constexpr u32 line = 32;
  static constexpr u32 tickets = 0;        ///< drawn so far in this kernel
  static constexpr u32 announced = line;   ///< the last step whose messages have arrived
  static constexpr u32 agreed = 2 * line;  ///< RoleTasks of the device's first rank
  static constexpr u32 parts = 3 * line;   ///< of each message: parts packed so far
  /// Of each message: the last step in which it has arrived, for odd steps and for even ones.
  MESHPOST_FN constexpr u32 arrived(u32 step) const { return parts + (1 + step % 2) * messages; }
  /// Of each rank: two words that thread 0 passes values in.
  MESHPOST_FN constexpr u32 passed() const { return parts + 3 * messages; }
  MESHPOST_FN constexpr u64 count() const { return passed() + u64{2} * ranks; }
};
}  // namespace detail

/// Draws tasks for a rank in a kernel that exchanges halos. All ranks of a device share its part of
/// the problem: windows made with shared_parts(). examples/13_roles_by_ticket shows the use:
///
///     RolesByTicket roles(self, words, {.messages = 2, .packers = 3, .interior = 8});
///     for (u32 step = 0; step < steps; ++step)
///       while (auto const task = roles.next()) switch (task.role) ...
///
/// No order in which ranks draw tickets can make a deadlock, if tasks of HaloRole::send and
/// HaloRole::interior wait for nothing. detail/roles.hpp has the proof.
///
/// Buffers: let two buffers take turns for what a neighbour puts, by the parity of the step. A
/// device may put into a buffer again two steps later, if each step it receives a message from
/// every device that it sends one to.
///
/// All threads of the rank call each function, with equal arguments. Errors end the run.
class RolesByTicket {
 public:
  /// Called by: all ranks of the world, with the same numbers at all ranks of a device. It is a
  ///         barrier of the world, so words that an earlier run has left are cleared.
  /// Errors: words of role_words() that have no room for the messages; no packers for messages;
  ///         more than RoleTasks::most tasks; numbers that differ from those of the first rank of
  ///         the device.
  MESHPOST_FN RolesByTicket(Rank& self, RoleWords const& words, RoleTasks const& tasks);

  /// The next task of this rank. Behind the last one of a step: no task, once all ranks of the
  /// device have come so far; then the next step begins. Tasks of HaloRole::unpack are returned
  /// when the receiving task is done, which is when its rank calls next() again. Order: what tasks
  /// of a step stored is seen by all ranks of the device in the next step. A task
  ///         of HaloRole::unpack sees what the messages brought.
  MESHPOST_FN RoleTask next();
  /// Called in a task of HaloRole::send, when its part is packed. Returns true in the last such
  /// task of the message: this rank then puts the message, and notifies the neighbour. Order: if
  /// true, this rank sees what all ranks have packed for this message. Errors: the task has another
  /// role.
  MESHPOST_FN bool packed(RoleTask const& task);
  /// Tells the device of `target`, which may be any of its ranks, that message `tag` of this step
  /// is there: that which this rank has put to `target` before.
  /// Order: as Rank::put_value. Errors: no such rank; a tag for which the words have no room.
  MESHPOST_FN void notify(RankId target, Tag tag);
  /// Called in the task of HaloRole::receive: waits until a neighbour has called notify() with this
  /// tag, in the same step. `expected`, a rank of the world, is named in the report if it never
  /// does.
  /// Errors: the task has another role; a tag for which the words have no room; as
  ///         Rank::wait_until.
  MESHPOST_FN void wait(Tag tag, RankId expected = {Note::no_rank});

 private:
  MESHPOST_FN void check(RoleTasks const& tasks) const;
  MESHPOST_FN static LocalSpan<u32> own_words(Rank& self, RoleWords const& words);
  MESHPOST_FN void check_tag(Tag tag) const;
  MESHPOST_FN u32 from_first_thread(u32 value);
  MESHPOST_FN u32* word(u32 place) const { return shared_.data() + place; }

  Rank* self_;
  RoleWords words_;
  RoleTasks tasks_;
  detail::RolePlaces places_;
  LocalSpan<u32> shared_;
  HaloRole role_ = HaloRole::none;  ///< of the task that this rank has; none behind packed()
  u32 step_ = 1;
  u32 first_ticket_ = 0;  ///< of this step
  u32 passed_ = 0;        ///< values passed from thread 0 to the others
};

#if !defined(__CUDACC_RTC__)
/// Parts for World::window: all ranks of a device have the same `count` elements.
inline std::vector<Extent> shared_parts(World const& world, u64 count) {
  return std::vector<Extent>(world.size(), Extent{.offset = 0, .count = count});
}

/// Makes the words for kernels whose devices each send and receive at most `messages` messages in
/// a step. Free them with World::free(words.words). Collective, as World::window.
/// \throws Error(bad_argument) for more than 65536 messages; as World::window
inline RoleWords role_words(World& world, u32 messages, std::string const& name = "roles") {
  constexpr u32 most = 65536;
  if (messages > most)
    throw Error(Kind::bad_argument, "role_words", std::to_string(messages) + " messages were asked",
                "a device may have " + std::to_string(most) + " in a step; put more into each");
  detail::RolePlaces const places{messages, world.ranks_per_device()};
  return {world.window<u32>(shared_parts(world, places.count()), Tags{0}, name), messages};
}
#endif

}  // namespace meshpost

#include "meshpost/rma/detail/roles.hpp"
