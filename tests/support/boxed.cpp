#include "support/boxed.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "meshpost/device/backend.hpp"
#include "meshpost/device/mailbox.hpp"
#include "meshpost/rma/run_state.hpp"

namespace meshpost::test {
namespace {

class BoxedDevice : public Device {
 public:
  explicit BoxedDevice(u32 index) : index_(index), inside_(backend("cpu").open(index)) {}
  std::string_view kind() const override { return "boxed"; }
  u32 index() const override { return index_; }
  DeviceInfo const& info() const override { return inside_->info(); }
  Allocation allocate(Bytes size, MemoryKind kind) override {
    return inside_->allocate(size, kind);
  }
  std::unique_ptr<Stream> make_stream() override { return inside_->make_stream(); }
  std::unique_ptr<Stream> adopt_stream(void* native) override {
    return inside_->adopt_stream(native);
  }
  PointerInfo locate(void const* pointer) override { return inside_->locate(pointer); }
  void read(void* host, void const* device, Bytes size) override {
    inside_->read(host, device, size);
  }
  void write(void* device, void const* host, Bytes size) override {
    inside_->write(device, host, size);
  }
  void fill(void* target, u8 value, Bytes size) override { inside_->fill(target, value, size); }

 private:
  u32 index_;
  std::shared_ptr<Device> inside_;
};

// A thread for each device stands in for its ranks that wait.
class BoxedGang : public Gang {
 public:
  explicit BoxedGang(GangSpec const& spec) : inside_(backend("cpu").launch(spec)) {
    for (auto const& grid : spec.grids)
      openers_.emplace_back([this, mail = static_cast<RunState const*>(grid.state)->mail] {
        while (mail.letters && !inside_->finished()) {
          open_letters(mail);
          std::this_thread::yield();
        }
      });
  }
  ~BoxedGang() override {
    for (auto& opener : openers_) opener.join();
  }
  BoxedGang(BoxedGang const&) = delete;
  BoxedGang& operator=(BoxedGang const&) = delete;

  void doze(std::chrono::microseconds patience) override { inside_->doze(patience); }
  bool finished() override { return inside_->finished(); }
  bool deadlocked() override { return inside_->deadlocked(); }
  std::optional<u64> quiet() override { return inside_->quiet(); }
  std::optional<Error> failure() override { return inside_->failure(); }

 private:
  std::unique_ptr<Gang> inside_;
  std::vector<std::thread> openers_;
};

constexpr u64 most_scratch = u64{64} << 10;  // GPUs have a limit, CPU devices none

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
    return backend("cpu").reserve(devices);
  }
  std::unique_ptr<Gang> launch(GangSpec const& spec) override {
    if (spec.scratch > most_scratch)
      throw Error(Kind::out_of_memory, "launch " + spec.image.name,
                  std::to_string(spec.scratch) + " bytes of scratch a rank were asked for",
                  "use at most " + std::to_string(most_scratch));
    return std::make_unique<BoxedGang>(spec);
  }
  void connect(std::vector<std::shared_ptr<Device>> const& /*devices*/) override {}

 private:
  std::mutex mutex_;
  std::map<u32, std::shared_ptr<Device>> devices_;
};

}  // namespace

void register_boxed() {
  static std::once_flag once;
  std::call_once(once, [] { register_backend(std::make_unique<BoxedBackend>()); });
}

}  // namespace meshpost::test
