#pragma once
#include "meshpost/compat/dcuda/detail/operations.hpp"

// Windows that kernels create without the host. The host has set aside a table with room for 64
// windows of each communicator. Each window has a row of parts by world rank. So a dCUDA window is
// a Window<char> whose parts are a row of that table and whose counters are the world's. A rank
// that creates one writes its entry and meets the others.
//
// If several processes share a run, each has its own base and stride of the symmetric heap, and
// windows must lie in the heap. A rank that creates a window writes into each device's table the
// address that its part has in that device's process. So ranks find addresses of their own process
// there, for near and far parts.
//
// All ranks of a communicator create and free its windows in the same order, so each knows by
// itself which row is next. A row is written again only after all have met in dcuda_win_free, after
// their last put to it.

namespace meshpost::compat {

inline constexpr u64 impossible_part = ~u64{0};  ///< size of a part that can't be exposed

/// Offset of a window's row in the symmetric heap.
__device__ inline u64 row_of(dcuda_state const& gst, u32 comm, u32 window) {
  return gst.tables.parts + (u64{comm} * dcuda_windows + window) * run_of(gst).ranks * sizeof(Part);
}

/// First window of the communicator that does not exist; dcuda_windows: there are no more.
__device__ inline u32 next_window(dcuda_state const& gst, u32 comm) {
  u32 window = 0;
  while (window < dcuda_windows && (gst.used[comm] >> window & 1)) ++window;
  return window;
}

/// True if other ranks can store there.
__device__ inline bool reachable(void const* data) {
#if defined(__CUDACC__)
  return data && __isGlobal(data);
#else
  return data;
#endif
}

/// True if other processes can: the `size` bytes lie in this device's part of the symmetric heap.
__device__ inline bool shareable(RunState const& run, void const* data, u64 size) {
  u64 const begin =
      reinterpret_cast<u64>(data) - reinterpret_cast<u64>(run.heap + run.device * run.stride);
  return begin < run.stride && size <= run.stride - begin;
}

/// Several processes: writes this rank's entry into the tables of all devices.
__device__ inline void tell_all(dcuda_state& gst, u32 comm, u32 window, Part const& mine) {
  operate(gst, [&](Rank& self) {
    RunState const& run = run_of(gst);
    Window<u64> const table(gst.tables.shared->parts), bases(gst.tables.shared->bases);
    u64 const entry = 2 * ((u64{comm} * dcuda_windows + window) * run.ranks + self.id());
    u64 const offset = reinterpret_cast<u64>(mine.data) -
                       reinterpret_cast<u64>(run.heap + run.device * run.stride);
    for (u32 device = 0; device < run.devices; ++device) {
      RankId const there{device * run.ranks_per_device};
      self.put_value(table.at(there, entry), bases.local(self)[device] + offset);
      self.put_value(table.at(there, entry + 1), mine.count);
    }
  });
}

struct DcudaWindow {
  u32 comm, window;
  WindowInfo info;
};

/// The window of the handle. Fails if it does not exist.
__device__ inline DcudaWindow window_of(dcuda_state const& gst, Rank& self, Operation operation,
                                        dcuda_win win) {
  if (win == DCUDA_WIN_NONE)
    self.fail(operation, Fault::misuse, 0, 0, 0, "the window is DCUDA_WIN_NONE");
  u32 const window = (win.number - 1) % dcuda_windows;
  u32 const comm = (win.number - 1) / dcuda_windows % dcuda_communicators;
  u32 const creation = (win.number - 1) / dcuda_windows / dcuda_communicators;
  if (!(gst.used[comm] >> window & 1) || gst.creations[comm][window] != creation)
    self.fail(operation, Fault::misuse, 0, 0, 0, "the window was freed, or never created");
  WindowInfo info = run_of(gst).tags;
  info.communicator = communicator_of(gst, self, operation, static_cast<int>(comm));
  info.parts = row_of(gst, comm, window);
  if (info.communicator.shape != Communicator::Shape::world) info.whole_world = 0;
  return {comm, window, info};
}

struct DcudaPut {
  Window<char> window;
  RankId rank;
  u64 offset;
  LocalSpan<char const> source;

  __device__ RemoteSpan<char> target() const { return window.at(rank, offset); }
};

__device__ inline DcudaPut check_put(dcuda_state const& gst, Rank& self, Operation operation,
                                     dcuda_win win, int rank, int offset, int size,
                                     void const* buffer) {
  Window<char> const window(window_of(gst, self, operation, win).info);
  check_argument(self, operation, "the rank", rank, 0,
                 i64{self.size(window.info().communicator)} - 1);
  check_argument(self, operation, "the offset", offset, 0, largest_int);
  check_argument(self, operation, "the size", size, 0, largest_int);
  auto const* const source = static_cast<char const*>(buffer);
  u64 const bytes = static_cast<u64>(size);
  auto const own = window.local(self);
  u64 const begin = reinterpret_cast<u64>(source) - reinterpret_cast<u64>(own.data());
  if (bytes != 0 && (begin > own.size() || bytes > own.size() - begin))
    self.fail(operation, Fault::source, begin, bytes, own.size());
  return {window, RankId{static_cast<u32>(rank)}, static_cast<u64>(offset), {source, bytes}};
}

}  // namespace meshpost::compat

__device__ inline void dcuda_win_create(dcuda_state& gst, dcuda_comm comm, void* winbase, int size,
                                        dcuda_win* win) {
  using namespace meshpost;
  Rank self = compat::rank_of(gst);
  *win = DCUDA_WIN_NONE;
  dcuda_log log = dcuda_log_get(gst);
  if (comm != DCUDA_COMM_WORLD && comm != DCUDA_COMM_DEVICE) {
    log << "dcuda_win_create gives DCUDA_WIN_NONE: there is no communicator " << comm << log.flush;
    return;
  }
  auto const c = static_cast<u32>(comm);
  Communicator const communicator = compat::communicator_of(gst, self, Operation::kernel, comm);
  u32 const window = compat::next_window(gst, c);
  if (window == compat::dcuda_windows) {
    dcuda_comm_barrier(gst, comm);
    if (self.id(communicator) == 0)
      log << "dcuda_win_create gives DCUDA_WIN_NONE: there are " << compat::dcuda_windows
          << " windows of this communicator already" << log.flush;
    return;
  }

  bool const shared = gst.tables.shared && comm == DCUDA_COMM_WORLD;
  bool possible = size == 0 || (size > 0 && compat::reachable(winbase));
  if (possible && size != 0 && shared &&
      !compat::shareable(self.state(), winbase, static_cast<u64>(size))) {
    possible = false;
    log << "dcuda_win_create gives DCUDA_WIN_NONE: other processes can't reach " << size
        << " bytes at " << winbase
        << "; take them from cudaMalloc, between dcuda_host_init and dcuda_host_finish"
        << log.flush;
  } else if (!possible) {
    log << "dcuda_win_create gives DCUDA_WIN_NONE: " << size << " bytes at " << winbase
        << " can't be exposed" << log.flush;
  }
  RunState const& run = self.state();
  u64 const row = compat::row_of(gst, c, window);
  Part const mine{winbase, possible ? static_cast<u64>(size) : compat::impossible_part};
  if (shared) {
    compat::tell_all(gst, c, window, mine);
  } else if (self.thread() == 0) {
    // Every device has its own copy of the table. The barrier orders the stores to all of them.
    u32 const first = comm == DCUDA_COMM_WORLD ? 0 : run.device;
    u32 const last = comm == DCUDA_COMM_WORLD ? run.devices - 1 : run.device;
    for (u32 device = first; device <= last; ++device)
      reinterpret_cast<Part*>(run.heap + device * run.stride + row)[self.id()] = mine;
  }
  dcuda_comm_barrier(gst, comm);

  auto const* const parts = reinterpret_cast<Part const*>(run.heap + run.device * run.stride + row);
  bool failed = false;
  self.each(self.size(communicator), [&](u64 i) {
    u32 const rank = self.world_rank(communicator, RankId{static_cast<u32>(i)});
    failed |= parts[rank].count == compat::impossible_part;
  });
  if (compat::this_block(run).any(failed)) {
    dcuda_comm_barrier(gst, comm);  // all have read the row before any rank writes it again
    return;
  }
  u32 const creation = (gst.creations[c][window] + 1) & 0xffff;
  self.sync();
  if (self.thread() == 0) {
    gst.used[c] |= u64{1} << window;
    gst.creations[c][window] = static_cast<unsigned short>(creation);
  }
  self.sync();
  *win =
      dcuda_win{1 + window + compat::dcuda_windows * (c + compat::dcuda_communicators * creation)};
}

__device__ inline void dcuda_win_free(dcuda_state& gst, dcuda_win win) {
  using namespace meshpost;
  Rank self = compat::rank_of(gst);
  auto const found = compat::window_of(gst, self, Operation::kernel, win);
  dcuda_comm_barrier(gst, static_cast<int>(found.comm));
  if (self.thread() == 0) gst.used[found.comm] &= ~(u64{1} << found.window);
  self.sync();
}

__device__ inline void dcuda_put(dcuda_state& gst, dcuda_win win, int rank, int offset, int size,
                                 void const* buffer) {
  using namespace meshpost;
  compat::operate(gst, [&](Rank& self) {
    auto const put = compat::check_put(gst, self, Operation::put, win, rank, offset, size, buffer);
    self.put(put.target(), put.source);
  });
}

__device__ inline void dcuda_put_notify(dcuda_state& gst, dcuda_win win, int rank, int offset,
                                        int size, void const* buffer, int tag) {
  using namespace meshpost;
  compat::operate(gst, [&](Rank& self) {
    auto const put =
        compat::check_put(gst, self, Operation::put_notify, win, rank, offset, size, buffer);
    compat::check_argument(self, Operation::put_notify, "the tag", tag, 0, compat::largest_tag);
    self.put_notify(put.target(), put.source, Tag{static_cast<u32>(tag)});
  });
}

__device__ inline void dcuda_win_flush(dcuda_state& gst, dcuda_win win) {
  using namespace meshpost;
  compat::operate(gst, [&](Rank& self) {
    self.flush(Window<char>(compat::window_of(gst, self, Operation::flush, win).info));
  });
}
