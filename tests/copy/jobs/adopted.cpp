// Memory of devices that a driver shares, like that of GPUs. It is mapped once, used with offsets,
// and dropped when its owner has released it. The driver is a fake: its devices' memory is in
// files.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <meshpost/base/descriptor.hpp>
#include <meshpost/copy/job_memory.hpp>
#include <meshpost/device/backend.hpp>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include "copy/jobs/jobs.hpp"

namespace meshpost {
namespace {

using test::expect_well;
using test::require;
using test::Role;
using testing::HasSubstr;

struct Ranges {
  std::mutex mutex;
  struct One {
    u64 size, id;
    int file;  // -1: of another process
  };
  std::map<char const*, One> all;
  std::atomic<u32> adopted{0}, dropped{0};
};
Ranges& ranges() {
  static auto* const one = new Ranges;  // memory may be freed after main
  return *one;
}

char* map_file(int file, u64 size) {
  void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  require(at != MAP_FAILED, "map");
  return static_cast<char*>(at);
}

// A device whose memory is known only to its driver.
class Drum : public Device {
 public:
  std::string_view kind() const override { return "drum"; }
  u32 index() const override { return 0; }
  DeviceInfo const& info() const override { return inner_->info(); }
  Allocation allocate(Bytes size, MemoryKind kind) override {
    if (kind != MemoryKind::device) return inner_->allocate(size, kind);
    int const file = memfd_create("drum", MFD_CLOEXEC);
    require(ftruncate(file, static_cast<off_t>(size.value)) == 0, "grow");
    char* const begin = map_file(file, size);
    std::scoped_lock const lock(ranges().mutex);
    ranges().all[begin] = {size, ++last_, file};
    return {begin, size, [](void* memory) {
              std::scoped_lock const free_lock(ranges().mutex);
              auto const range = ranges().all.extract(static_cast<char*>(memory));
              munmap(memory, range.mapped().size);
              close(range.mapped().file);
            }};
  }
  Bytes free_memory() override { return inner_->free_memory(); }
  std::unique_ptr<Stream> make_stream() override { return inner_->make_stream(); }
  std::unique_ptr<Stream> adopt_stream(void* native) override {
    return inner_->adopt_stream(native);
  }
  PointerInfo locate(void const* pointer) override { return inner_->locate(pointer); }
  void do_read(void* h, void const* d, Bytes size) override { inner_->read(h, d, size); }
  void do_write(void* d, void const* h, Bytes size) override { inner_->write(d, h, size); }
  void do_fill(void* target, u8 value, Bytes size) override { inner_->fill(target, value, size); }

 private:
  std::shared_ptr<Device> inner_ = backend("cpu").open(0);
  u64 last_ = 0;
};

class Drums : public Backend {
 public:
  std::string_view kind() const override { return "drum"; }
  u32 count() override { return 1; }
  std::shared_ptr<Device> open(u32) override {
    static auto const one = std::make_shared<Drum>();
    return one;
  }
  std::unique_ptr<AddressSpace> reserve(SpaceDevices const&) override { return nullptr; }
  std::unique_ptr<CooperativeLaunch> launch(LaunchSpec const&) override { return nullptr; }
  void connect(std::vector<std::shared_ptr<Device>> const&) override {}
  std::optional<MemoryRange> identify(void const* pointer) override {
    std::scoped_lock const lock(ranges().mutex);
    auto const* const at = static_cast<char const*>(pointer);
    auto const next = ranges().all.upper_bound(at);
    if (next == ranges().all.begin()) return std::nullopt;
    auto const& [begin, range] = *std::prev(next);
    if (at >= begin + range.size) return std::nullopt;
    return MemoryRange{begin, range.size, MemoryKind::device, open(0).get(), true, range.id};
  }
  u64 memory_id(void const* pointer) override {
    auto const found = identify(pointer);
    return found ? found->id : 0;
  }
  // Shares by a file, or by a handle that tells where the file is.
  SharedMemory share_memory(void const* pointer) override {
    auto const found = identify(pointer).value();
    int file = -1;
    {
      std::scoped_lock const lock(ranges().mutex);
      file = ranges().all.at(found.begin).file;
    }
    SharedMemory shared{found.id, found.begin, found.size, {}, {}};
    if (std::getenv("MESHPOST_TEST_FILES"))
      shared.file = Descriptor(fcntl(file, F_DUPFD_CLOEXEC, 0));
    else shared.handle = fmt::format("/proc/{}/fd/{}", getpid(), file);
    return shared;
  }
  void* adopt_memory(Device&, std::string const& handle, int file, Bytes size) override {
    if (std::getenv("MESHPOST_TEST_REFUSES"))
      throw Error(Kind::bad_environment, "adopt", "the drum is full", "empty it");
    Descriptor const opened(handle.empty() ? -1 : ::open(handle.c_str(), O_RDWR | O_CLOEXEC));
    require(handle.empty() == (file >= 0), "a file or a handle");
    char* const begin = map_file(handle.empty() ? file : opened.get(), size);
    std::scoped_lock const lock(ranges().mutex);
    ranges().all[begin] = {size, 1'000'000 + ++ranges().adopted, -1};
    return begin;
  }
  void drop_memory(void* adopted) override {
    std::scoped_lock const lock(ranges().mutex);
    munmap(adopted, ranges().all.at(static_cast<char*>(adopted)).size);
    ranges().all.erase(static_cast<char*>(adopted));
    ++ranges().dropped;
  }
};

Role const drums("drums", [] {
  register_backend(std::make_unique<Drums>());
  bool const bare = std::getenv("MESHPOST_TEST_BARE") != nullptr;
  auto const device = backend(bare ? "cpu" : "drum").open(0);
  use_devices_for_copies({device});
  JobMemory job;
  u32 const me = job.process(), all = job.processes();
  constexpr u64 size = 300'000;
  auto const meet = [&] { auto const meeting = job.expose(nullptr, Bytes{}, "meet"); };
  for (int round = 0; round < 3; ++round) {
    auto const memory = job.allocate(*device, Bytes{size});
    std::vector<u8> const mine(size, static_cast<u8>(10 * round + me));
    device->write(memory.data(), mine.data(), Bytes{size});
    auto first = job.expose(memory.data(), Bytes{size / 2}, "first");
    auto second = job.expose(memory.as<char>() + size / 3, Bytes{size / 2}, "second");
    if (round == 0)
      for (u32 process = 0; process < all; ++process)
        std::printf("%u: %s %s\n", process,
                    std::string(to_string(second.part(process).path)).c_str(),
                    second.part(process).device.c_str());
    for (u32 process = 0; process < all; ++process) {
      std::vector<u8> here(size / 2);
      copy(here.data(), second.at(process, 0, Bytes{size / 2}));
      require(here == std::vector<u8>(size / 2, static_cast<u8>(10 * round + process)), "get");
      auto const there = device->allocate(Bytes{1000}, MemoryKind::device);
      copy(there.data(), first.at(process, 77, Bytes{1000}));
    }
    meet();
    u8 const word = static_cast<u8>(100 + me);
    for (u32 process = 0; process < all; ++process) copy(second.at(process, me, Bytes{1}), &word);
    meet();
    std::vector<u8> now(size);
    device->read(now.data(), memory.data(), Bytes{size});
    for (u32 process = 0; process < all; ++process)
      require(now[size / 3 + process] == 100 + process, "put");
    meet();
    first.release();
    meet();
    require(round > 0 || ranges().dropped == 0, "still exposed");
    second.release();
    meet();  // all have released
    meet();  // and all know it
    std::printf("adopted %u dropped %u\n", ranges().adopted.load(), ranges().dropped.load());
  }
});

TEST(JobCopies, map_a_drivers_memory_once_and_drop_it_when_it_is_released) {
  for (bool const files : {false, true}) {
    test::Variables all{{"MESHPOST_NODE", "one"}};
    if (files) all["MESHPOST_TEST_FILES"] = "1";
    test::Job job("drums", 3, all);
    auto const& ended = job.wait();
    expect_well(ended);
    for (auto const& one : ended)
      for (auto const* const text :
           {"adopted 2 dropped 2", "adopted 4 dropped 4", "adopted 6 dropped 6"})
        EXPECT_THAT(one.out, HasSubstr(text));
    EXPECT_THAT(ended[0].out, HasSubstr("1: mapped drum:0"));
  }
}

TEST(JobCopies, from_and_to_processes_without_the_device_go_through_the_owner) {
  for (auto const* const variable : {"MESHPOST_TEST_BARE", "MESHPOST_TEST_REFUSES"}) {
    test::Job job("drums", 3, {{"MESHPOST_NODE", "one"}}, [&](u32 process) -> test::Variables {
      if (process == 2) return {{variable, "1"}};
      return {};
    });
    auto const& ended = job.wait();
    expect_well(ended);
    EXPECT_THAT(ended[0].out, HasSubstr("1: mapped drum:0"));
    EXPECT_THAT(ended[2].out, HasSubstr("1: staged drum:0"));
    EXPECT_THAT(ended[2].out, HasSubstr("take a slower path: "));
    EXPECT_THAT(ended[2].out, testing::AnyOf(HasSubstr("this process has no drum device"),
                                             HasSubstr("the drum is full")));
  }
}

}  // namespace
}  // namespace meshpost
