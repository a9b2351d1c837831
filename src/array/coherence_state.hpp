#pragma once
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "copy/state.hpp"
#include "meshpost/array/coherence.hpp"

namespace meshpost::detail {

/// The memory of an array in one place.
struct Replica {
  ContextPtr at;
  Allocation memory{};
  bool valid = false;
  copying::StatePtr arriving{};  ///< a prefetch to here that was not yet waited for
  std::string arriving_from{};   ///< its source
  std::source_location prefetch_where{};
};

struct LiveAccess::Entry {
  AccessMode mode;
  ContextPtr at;  ///< what was asked for
  Replica* home;  ///< whose memory it has
  std::source_location where;
  std::shared_ptr<Event> after{};  ///< it ends with this event, and its LiveAccess is gone
};

/// The state of an array. It lives as long as the array or one of its accesses.
///
/// There are two mutexes. `moving` is held by calls that allocate, copy or free: these take turns.
/// `mutex` is held while the fields are read or changed, and never while something waits,
/// allocates, copies or frees. So accesses end without delay, in a stream's callback too. There,
/// nothing may wait for the device.
struct LiveAccess::State : std::enable_shared_from_this<LiveAccess::State> {
  using Lock = std::unique_lock<std::mutex>;

  State(Bytes bytes, std::string text) : name(std::move(text)), element(bytes) {}
  void set_elements(u64 count) { size = bytes_of(count); }

  LiveAccess access(ContextPtr const& at, AccessMode mode, std::source_location where);
  std::shared_ptr<Event> prefetch(ContextPtr const& at, std::source_location where);
  void drop(ContextPtr const& at, std::source_location where);
  void resize(u64 elements, Contents contents, std::source_location where);
  /// The array is destroyed.
  void abandon() noexcept;
  void end(Entry* entry) noexcept;
  void end_after(Entry* entry, std::shared_ptr<Event> event) noexcept;
  Bytes bytes() const { return size; }  // while an access is live
  u64 elements();
  bool valid_at(ContextPtr const& at);
  std::vector<ArrayCopies> all_copies();
  std::string explain();

  struct Turn;  // of a call that holds `moving`

  // All these under `mutex`. A Lock is released while something waits.
  LiveAccess begin(ContextPtr const& at, Replica* home, AccessMode mode,
                   std::source_location where);
  Replica* find(ContextPtr const& at);
  Replica* arriving_for(Context const& at);
  /// The memory that an access would have; null: it must be made, or brought up to date.
  Replica* find_home(ContextPtr const& at, AccessMode mode);
  /// A live access that excludes an access to `home`.
  Entry* excluding(Replica const* home, AccessMode mode);
  /// Throws, or returns when the accesses that exclude this one have ended.
  void wait_for(Lock& lock, Entry const& other, char const* what, ContextPtr at,
                std::source_location where);
  void wait_event(Lock& lock, std::shared_ptr<Event> const& event);
  /// Waits for a prefetch. \throws its error if `report`; else that becomes a warning
  void wait_arrival(Lock& lock, Replica& replica, bool report);
  void wait_arrivals(Lock& lock);
  void note_arrivals();
  void arrived(Replica& replica);
  /// If the array is destroyed, and no access is live.
  void bury_unused() noexcept;
  Replica& own(ContextPtr const& at);
  void allocate(Lock& lock, Replica& replica);
  /// Copies from the best valid place. \returns null, or the state of a copy in progress.
  copying::StatePtr bring(Lock& lock, Replica& target, bool wait, std::string& source,
                          std::source_location where);
  Replica& best_source(Lock& lock, Replica const& target);
  void only_valid(Replica* replica);
  void note_copy(std::string const& source, std::string const& target, Bytes bytes);

  /// \throws Error(bad_argument) for more than can be counted
  Bytes bytes_of(u64 elements) const;
  std::string title() const;
  std::string operation(char const* what, Context const& at, std::source_location where) const;
  /// In a handler, without `mutex`: warns of the exception, which has no caller to be thrown to.
  void warn_of(char const* what, Context const& at, std::source_location where) const noexcept;

  std::mutex moving, mutex;
  std::string name;
  Bytes element, size{};
  bool changing = false;  ///< a call copies: no write access begins beside it
  bool closed = false;    ///< a call replaces memory: no access begins beside it
  bool orphan = false;    ///< the array is destroyed
  std::list<Replica> replicas;
  std::list<Entry> entries;
  std::map<std::pair<std::string, std::string>, std::pair<u64, u64>> counts;  // copies, bytes
};

/// Keeps memory of a destroyed array, whose last access ended where nothing may be freed.
/// `entries`: accesses to it that end with events.
void bury(std::list<Replica> replicas, std::list<LiveAccess::Entry> entries) noexcept;
/// Frees the memory whose events are done. Waits for nothing.
void free_buried() noexcept;

/// "file.cpp:12"
std::string short_text(std::source_location where);

}  // namespace meshpost::detail
