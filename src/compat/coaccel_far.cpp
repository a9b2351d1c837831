#include "compat/coaccel_far.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/fork.hpp"
#include "compat/coaccel_error.hpp"
#include "copy/locate.hpp"
#include "meshpost/base/config.hpp"
#include "pipeline/crossing.hpp"

namespace meshpost::coaccel {
namespace {

// The addresses of all MPI devices.
struct Range {
  u64 size = 0;
  std::shared_ptr<FarDevice> device;
};
struct Ranges {
  std::mutex mutex;
  std::map<u64, Range> all;  // by their beginning
};
Ranges& ranges() {
  static auto* const one = new Ranges;
  return *one;
}

// The device for whose process an address stands; null: it is memory of this process.
std::shared_ptr<FarDevice> far_at(char const* operation, void const* address, u64 size) {
  auto const at = reinterpret_cast<u64>(address);
  std::scoped_lock const lock(ranges().mutex);
  auto next = ranges().all.upper_bound(at);
  if (next == ranges().all.begin()) return nullptr;
  auto const& [begin, range] = *std::prev(next);
  if (at - begin >= range.size) return nullptr;
  if (size > range.size - (at - begin))
    refuse(operation,
           fmt::format("{} bytes at offset {} of the {} bytes that were allocated on {}", size,
                       at - begin, range.size, name_of(range.device->key)),
           "allocate more with coaccel_device_malloc");
  return range.device;
}

// Bytes that are read or written here while pieces move.
struct Used {
  u64 begin = 0, end = 0;
  bool written = false;
};

void refuse_overlap(char const* operation, std::vector<Used> used) {
  std::ranges::sort(used, {}, &Used::begin);
  u64 read = 0, written = 0;  // where the pieces so far end
  for (auto const& one : used) {
    if (one.begin < (one.written ? std::max(read, written) : written))
      refuse(operation,
             fmt::format("two pieces touch the byte at {}, and one writes it",
                         reinterpret_cast<void*>(one.begin)),
             "let pieces not overlap");
    auto& end = one.written ? written : read;
    end = std::max(end, one.end);
  }
}

}  // namespace

FarDevice::~FarDevice() {
  if (!is_forked()) network->close(key);  // a child process has not its thread
}

std::shared_ptr<FarDevice> open_far(std::string const& name) {
  constexpr char const* operation = "coaccel_device_open";
  constexpr u64 most = 0x7fffffff;
  if (!MESHPOST_BUILT_WITH_MPI)
    throw Error(Kind::bad_environment, operation,
                fmt::format("'{}' needs MPI, and meshpost was built without it", name),
                "install MPI (libopenmpi-dev) and configure with -DMESHPOST_MPI=ON");
  auto const numbers = name.substr(std::string_view("mpi:").size());
  auto const colon = numbers.find(':');
  auto const rank = parse_number(std::string_view(numbers).substr(0, colon));
  auto const id =
      parse_number(colon == numbers.npos ? "0" : std::string_view(numbers).substr(colon + 1));
  if (!rank || !id || *rank > most || *id > most)
    refuse(operation, fmt::format("there is no device '{}'", name),
           "use mpi:RANK or mpi:RANK:ID, with numbers from 0 to 2147483647");
  refuse_after_fork(operation);
  auto const over = network();
  if (!over)
    throw Error(Kind::misuse, operation,
                fmt::format("'{}' needs a communicator, and the program has given none", name),
                "link meshpost::mpi, and call coaccel_mpi_init(comm) of coaccel_mpi.h after "
                "MPI_Init_thread");
  return std::make_shared<FarDevice>(over,
                                     over->open(static_cast<u32>(*rank), static_cast<u32>(*id)));
}

Allocation far_addresses(std::shared_ptr<FarDevice> device, Bytes size) {
  if (size == 0)
    refuse("coaccel_device_malloc", "0 bytes on " + name_of(device->key), "ask for 1 or more");
  pipelining::Addresses addresses(size);
  void* const begin = addresses.begin();
  auto const at = reinterpret_cast<u64>(begin);
  std::scoped_lock const lock(ranges().mutex);
  ranges().all[at] = {size, std::move(device)};
  return {begin, size, [kept = std::move(addresses), at](void*) {
            std::scoped_lock const again(ranges().mutex);
            ranges().all.erase(at);
          }};
}

Pieces::Far& Pieces::far(std::shared_ptr<FarDevice> const& device, Way way) {
  auto const found = std::ranges::find_if(
      far_, [&](Far const& one) { return one.device == device && one.way == way; });
  return found != far_.end() ? *found : far_.emplace_back(device, way);
}

Pieces::Pieces(char const* operation, std::vector<Segment> const& segments) {
  std::vector<Segment> here;
  std::vector<Used> used;
  auto const part = [&](void const* at, u64 size, bool written) {
    if (size == 0) return Part{};
    auto const memory = copying::locate(at, size, operation, written ? "target" : "source");
    return Part{static_cast<char*>(const_cast<void*>(at)), size, memory.on_host};
  };
  auto const use = [&](void const* at, u64 size, bool written) {
    auto const begin = reinterpret_cast<u64>(at);
    if (size != 0) used.push_back({begin, begin + size, written});
  };
  for (auto const& one : segments) {
    auto const to = far_at(operation, one.target, one.size);
    auto const from = far_at(operation, one.source, one.size);
    if (to && from)
      refuse(operation,
             fmt::format("a piece goes from {} to {}", name_of(from->key), name_of(to->key)),
             "copy to memory of this process, then from there");
    if (!from) use(one.source, one.size, false);
    if (!to) use(one.target, one.size, true);
    if (to) far(to, Way::out).parts.push_back(part(one.source, one.size, false));
    else if (from) far(from, Way::in).parts.push_back(part(one.target, one.size, true));
    else here.push_back(one);
  }
  if (far_.empty()) {
    here_.emplace(copy_batch(here, {Overlap::refuse, {}}));
    return;
  }
  refuse_after_fork(operation);
  refuse_overlap(operation, std::move(used));
  for (auto const& one : far_) one.device->network->check(one.device->key);
  if (!here.empty()) here_.emplace(copy_batch(here, {Overlap::refuse, {}}));
  try {
    for (auto& one : far_)
      one.message = one.device->network->start(one.device->key, one.way, std::move(one.parts));
  } catch (...) {  // no memory: those that have begun must not use the pieces any more
    auto const error =
        Error(Kind::out_of_memory, operation, "no memory for a message", "free some");
    for (auto& one : far_) one.device->network->fail(one.device->key, error);
    throw;
  }
}

Pieces::~Pieces() {
  if (is_forked()) return;  // the thread that would end the wait is the parent's
  for (auto& one : far_) try {
      if (one.message) one.device->network->wait(*one.message);
    } catch (...) {
      continue;  // wait() has thrown it, or nobody asked
    }
}

void Pieces::wait() {
  if (!far_.empty()) refuse_after_fork("coaccel_memcpy_finish");
  for (auto& one : far_) one.device->network->wait(*one.message);
  if (here_) here_->wait();
}

}  // namespace meshpost::coaccel
