#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/caught.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/world/layout.hpp"
#include "world/node.hpp"

namespace meshpost {

class Spaces;

/// The processes that a World spans, or this one alone. All processes call the collective
/// functions, in the same order. Not thread-safe.
class ProcessGroup {
 public:
  ProcessGroup() = default;  ///< alone
  /// Collective. `channel`: the World's own, the same everywhere.
  ProcessGroup(std::shared_ptr<Processes> processes, u32 channel);

  bool alone() const { return !processes_; }
  u32 number() const { return alone() ? 0 : processes_->number(); }
  u32 count() const { return alone() ? 1 : processes_->count(); }
  u32 channel() const { return channel_; }
  Processes& processes() const { return *processes_; }  ///< not if alone
  Node& node() const { return *node_; }                 ///< not if alone
  /// Out of reach of loads and stores.
  bool far(u32 process) const { return !alone() && !node_->has(process); }
  /// True if any process is out of reach of any other. The same in all processes.
  bool any_far() const { return !alone() && !node_->only(); }

  /// Returns `mine` of every process. Collective.
  /// \throws as Processes::exchange
  std::vector<std::string> exchange(std::string const& operation, std::string mine = {},
                                    Waiters waiters = Waiters::impatient) const;

  /// Does `work`. If it throws in some processes, all throw the error of the first of them.
  /// Collective.
  template <class Work>
  void together(std::string const& operation, Work&& work) const {
    std::optional<Error> mine;
    try {
      work();
    } catch (...) {
      mine = caught(operation);
    }
    agree(operation, mine);
  }
  /// Returns the result of `work()` of every process. Throws as above.
  std::vector<std::string> gather(std::string const& operation,
                                  std::function<std::string()> const& work) const;
  /// Throws the first error that a process has. Collective.
  void agree(std::string const& operation, std::optional<Error> const& mine) const;

  /// Lines about processes that are silent, for an error about things that did not come. Each
  /// begins with "\n  ". Empty if there are none.
  std::string silence() const;

  /// Another process's error, as this process throws it.
  Error of_process(u32 process, Error const& error) const;

  /// Grows all devices' memory, and maps that of other processes. Collective.
  void extend(Spaces& spaces, Layout const& layout, Bytes offset, Bytes size) const;

 private:
  std::shared_ptr<Processes> processes_;
  u32 channel_ = 0;
  std::unique_ptr<Node> node_;
};

/// A setting that must be equal in all processes.
struct Setting {
  std::string_view what;    ///< such as "ranks a device"
  std::string_view remedy;  ///< where it is set
  std::string value;
};

/// The devices of all processes. `spec` names those of this one. Otherwise as make_layout.
/// Collective.
/// \throws Error(bad_argument) if processes differ in the number of ranks, or in a setting
Layout make_layout(std::string const& spec, u32 ranks, bool apart, ProcessGroup const& group,
                   std::vector<Setting> const& settings);

}  // namespace meshpost
