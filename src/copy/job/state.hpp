#pragma once
// The state of a JobMemory, shared by its files.
#include <atomic>
#include <exception>
#include <map>
#include <set>
#include <shared_mutex>

#include "copy/job/access_epochs.hpp"
#include "copy/job/copy_server.hpp"
#include "copy/job/other_memory.hpp"
#include "copy/job/part_info.hpp"
#include "copy/locate.hpp"
#include "world/imports.hpp"
#include "world/memory_files.hpp"
#include "world/progress_thread.hpp"

namespace meshpost {

/// An exposure, as all processes know it.
struct RemoteBytes::Exposure {
  std::shared_ptr<JobMemory::State> job;
  u32 number = 0;  ///< the same in all processes
  std::string name;
  std::vector<copying::PartInfo> parts;  ///< by process, as told
  std::vector<ExposedPart> known;        ///< by process, as this one sees it
  std::vector<char*> here;               ///< by process: where it begins here; null: nowhere
};

struct JobMemory::State : copying::Store, std::enable_shared_from_this<JobMemory::State> {
  explicit State(JobMemoryOptions const& options);

  std::shared_ptr<RemoteBytes::Exposure> expose(void* memory, Bytes size, std::string const& name);
  void meet(std::string const& name);
  /// Of this process's part; again: nothing.
  void release(u32 number);
  /// Those of this process's parts that lie in this range.
  void release_all_in(char const* begin, u64 size);
  /// If the thread of its copies hangs, this is kept for ever. `self`: owns this.
  void end(std::shared_ptr<State> const& self);

  /// Begins a copy that goes by messages of this path.
  copying::StatePtr ask(CopyPath path, copying::CopyRequest const& request);
  /// Counts a copy: end() waits for it. \throws Error(misuse) when the JobMemory is gone
  void begin_copy();
  void end_copy();
  /// \throws Error(peer_lost) if it is known that a process is lost
  void check_alive(u32 process) const;

  /// The next number of something that all processes do together: the same in all, used once.
  u64 next_number() { return ++numbers_; }

  /// After hearing from another process of what it has put here: the progress thread's writes
  /// happened before. (They did, by way of that process; within this one nothing else says so.)
  void see_arrivals() const { static_cast<void>(arrivals_.load(std::memory_order_acquire)); }

  ProcessGroup const group;
  copying::AccessEpochs epochs;
  copying::OtherMemory const other;
  ProgressThread progress_thread;

 private:
  // Channels of the bootstrap for what copy servers say out of band, beside the job memory's own.
  static constexpr u32 network_notices = u32{1} << 30, staged_notices = u32{1} << 29;
  std::unique_ptr<copying::CopyServer> make_server(std::unique_ptr<net::Engine> engine,
                                                   u32 notices);

  int const exceptions_ = std::uncaught_exceptions();  // in flight when it was made
  CopyPath const fastest_;
  void write(u32 exposure, u64 offset, std::string_view bytes) override;
  void read(u32 exposure, u64 offset, char* target, u64 size) override;
  struct Own {
    u32 slot;
    char* begin;
    u64 size;
    std::string name;
    AllocationName allocation;
  };
  Own own_part(u32 exposure, u64 offset, u64 size);
  copying::PartInfo describe(void* memory, Bytes size, std::string const& name,
                             std::vector<Descriptor>& files_to_pass);
  void name_allocation(copying::PartInfo& part, char* memory, copying::Location const& where,
                       std::vector<Descriptor>& files_to_pass);
  void tell_what_is_gone(copying::PartInfo& part);
  static Device* device_for(copying::PartInfo const& part);
  void choose_path(RemoteBytes::Exposure& exposure, u32 process, int file);
  void see_to_staging(RemoteBytes::Exposure const& exposure);
  bool exposes(AllocationName const& name) const;
  void warn_once(u32 process, std::string const& text);

  std::mutex collective_;  // held in expose(): its exchanges have an order
  u32 last_ = 0;           // exposure
  Imports imports_;
  std::vector<AllocationName> passed_;  // whose files all have
  bool warned_ = false;

  std::shared_mutex mutex_;           // of what follows
  std::map<u32, Own> own_;            // by exposure
  std::set<u64> files_;               // memory files that were exposed, and still are
  std::vector<AllocationName> gone_;  // others need not map them any more; to be told

  std::mutex copies_;  // of what follows
  std::condition_variable copies_changed_;
  u64 under_way_ = 0;
  bool ended_ = false;

  std::atomic<u64> numbers_{0}, arrivals_{0};
  copying::CopyServer *network_ = nullptr, *staged_ = nullptr;
  MemoryFiles::Watch const watch_;
};

}  // namespace meshpost
