#include "support/boxed.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "meshpost/device/backend.hpp"
#include "meshpost/rma/run_state.hpp"

namespace meshpost::test {
namespace {

// Memory of boxed devices, in files that other processes map, as drivers let them map memory of
// GPUs.
class Boxes {
 public:
  Allocation make(Bytes size, Device& device) {
    u64 const bytes = std::max<u64>(size, 1);
    Descriptor file(memfd_create("box", MFD_CLOEXEC));
    if (!file || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) std::abort();
    auto* const begin = map(file.get(), bytes);
    memory_map().add({begin, bytes, MemoryKind::device, &device, true, 0});
    std::scoped_lock const lock(mutex_);
    boxes_.insert_or_assign(begin, Box{++last_, bytes, std::move(file)});
    return {begin, size, [this](void* memory) { free(static_cast<char*>(memory)); }};
  }
  SharedMemory share(void const* pointer) {
    std::scoped_lock const lock(mutex_);
    auto const next = boxes_.upper_bound(static_cast<char const*>(pointer));
    if (next == boxes_.begin() || pointer >= std::prev(next)->first + std::prev(next)->second.size)
      throw Error(Kind::bad_environment, "share a box", "it lies in none", "use a box");
    auto const& [begin, box] = *std::prev(next);
    return {box.id, begin, box.size, "box", Descriptor::copy_of(box.file.get())};
  }
  static char* map(int file, u64 size) {
    void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) std::abort();
    return static_cast<char*>(at);
  }

 private:
  struct Box {
    u64 id, size;
    Descriptor file;
  };
  void free(char const* begin) {
    std::scoped_lock const lock(mutex_);
    auto const box = boxes_.extract(begin);
    memory_map().forget(begin, box.mapped().size);
    munmap(const_cast<char*>(begin), box.mapped().size);
  }
  std::mutex mutex_;
  std::map<char const*, Box> boxes_;
  u64 last_ = 0;
};

Boxes& boxes() {
  static auto* const one = new Boxes;
  return *one;
}

class BoxedDevice : public Device {
 public:
  explicit BoxedDevice(u32 index) : index_(index), inside_(backend("cpu").open(index)) {}
  std::string_view kind() const override { return "boxed"; }
  u32 index() const override { return index_; }
  DeviceInfo const& info() const override { return inside_->info(); }
  Allocation allocate(Bytes size, MemoryKind kind) override {
    return kind == MemoryKind::device ? boxes().make(size, *this) : inside_->allocate(size, kind);
  }
  Bytes free_memory() override { return inside_->free_memory(); }
  std::unique_ptr<Stream> make_stream() override { return inside_->make_stream(); }
  std::unique_ptr<Stream> adopt_stream(void* native) override {
    return inside_->adopt_stream(native);
  }
  PointerInfo locate(void const* pointer) override { return inside_->locate(pointer); }
  void do_read(void* host, void const* device, Bytes size) override {
    inside_->read(host, device, size);
  }
  void do_write(void* device, void const* host, Bytes size) override {
    inside_->write(device, host, size);
  }
  void do_fill(void* target, u8 value, Bytes size) override { inside_->fill(target, value, size); }

 private:
  u32 index_;
  std::shared_ptr<Device> inside_;
};

// For each device a thread replaces its waiting ranks.
class BoxedLaunch : public CooperativeLaunch {
 public:
  explicit BoxedLaunch(LaunchSpec const& spec) : inside_(backend("cpu").launch(spec)) {
    for (auto const& grid : spec.grids)
      openers_.emplace_back(
          [this, command_queue = static_cast<RunState const*>(grid.state)->command_queue] {
            while (command_queue.anything() && !inside_->finished()) {
              command_queue.poll({});
              std::this_thread::yield();
            }
          });
  }
  ~BoxedLaunch() override {
    for (auto& opener : openers_) opener.join();
  }
  BoxedLaunch(BoxedLaunch const&) = delete;
  BoxedLaunch& operator=(BoxedLaunch const&) = delete;

  void doze(std::chrono::microseconds timeout) override { inside_->doze(timeout); }
  bool finished() override { return inside_->finished(); }
  bool deadlocked() override { return inside_->deadlocked(); }
  std::optional<u64> quiet() override { return inside_->quiet(); }
  std::optional<Error> failure() override { return inside_->failure(); }

 private:
  std::unique_ptr<CooperativeLaunch> inside_;
  std::vector<std::thread> openers_;
};

constexpr u64 most_scratch = u64{64} << 10;  // GPUs have a limit, CPU devices none

thread_local std::optional<u32> played;

u32 own_process() {
  char const* const number = std::getenv("MESHPOST_PROCESS");
  return played.value_or(number ? static_cast<u32>(std::stoul(number)) : 0);
}

void refuse_where_told(u32 process, u32 owner, std::string const& operation) {
  char const* const refused = std::getenv("MESHPOST_TEST_REFUSED");
  auto const pair = "," + std::to_string(process) + ":" + std::to_string(owner) + ",";
  if (refused && ("," + std::string(refused) + ",").find(pair) != std::string::npos)
    throw Error(Kind::bad_environment, operation, "it is boxed in", "open the box");
}

// The mode of a file says whose it is.
class BoxedSpace : public AddressSpace {
 public:
  explicit BoxedSpace(SpaceDevices const& devices) : inside_(backend("cpu").reserve(devices)) {}
  char* base() const override { return inside_->base(); }
  Bytes stride() const override { return inside_->stride(); }
  Bytes granularity() const override { return inside_->granularity(); }
  void extend(Bytes offset, Bytes size) override {
    if (!mapped_.insert(offset.value).second)  // as GPUs do
      throw Error(Kind::device_failed, "map a box", "there is one already", "unmap it first");
    inside_->extend(offset, size);
  }
  void shrink(Bytes offset, Bytes size) noexcept override {
    mapped_.erase(offset.value);
    inside_->shrink(offset, size);
  }
  int share(u32 device, Bytes offset, Bytes size) override {
    refuse_where_told(own_process(), own_process(), "share a box");
    int const file = inside_->share(device, offset, size);
    if (fchmod(file, 0600 + own_process()) != 0) std::abort();
    return file;
  }
  void adopt(u32 device, Bytes offset, Bytes size, int file) override {
    struct stat status{};
    if (fstat(file, &status) != 0) std::abort();
    refuse_where_told(own_process(), status.st_mode & 077, "map a box");
    inside_->adopt(device, offset, size, file);
  }

 private:
  std::unique_ptr<AddressSpace> inside_;
  std::set<u64> mapped_;
};

class BoxedBackend : public Backend {
 public:
  std::string_view kind() const override { return "boxed"; }
  u32 count() override { return 8; }
  std::shared_ptr<Device> open(u32 index) override {
    std::scoped_lock const lock(mutex_);
    auto& device = devices_[index];
    if (!device) device = std::make_shared<BoxedDevice>(index);
    return device;
  }
  std::unique_ptr<AddressSpace> reserve(SpaceDevices const& devices) override {
    return std::make_unique<BoxedSpace>(devices);
  }
  std::unique_ptr<CooperativeLaunch> launch(LaunchSpec const& spec) override {
    if (spec.scratch > most_scratch)
      throw Error(Kind::out_of_memory, "launch " + spec.image.name,
                  std::to_string(spec.scratch) + " bytes of scratch a rank were asked for",
                  "use at most " + std::to_string(most_scratch));
    return std::make_unique<BoxedLaunch>(spec);
  }
  void connect(std::vector<std::shared_ptr<Device>> const& /*devices*/) override {}
  SharedMemory share_memory(void const* pointer) override { return boxes().share(pointer); }
  void* adopt_memory(Device&, std::string const& handle, int file, Bytes size) override {
    if (handle != "box") std::abort();
    char* const begin = Boxes::map(file, size);
    std::scoped_lock const lock(mutex_);
    adopted_[begin] = size;
    return begin;
  }
  void drop_memory(void* adopted) override {
    std::scoped_lock const lock(mutex_);
    munmap(adopted, adopted_.extract(adopted).mapped());
  }

 private:
  std::mutex mutex_;
  std::map<u32, std::shared_ptr<Device>> devices_;
  std::map<void*, u64> adopted_;
};

}  // namespace

void register_boxed() {
  static std::once_flag once;
  std::call_once(once, [] { register_backend(std::make_unique<BoxedBackend>()); });
}

void play_process(u32 number) { played = number; }

}  // namespace meshpost::test
