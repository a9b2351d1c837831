#pragma once
#include <meshpost/base/error.hpp>
#include <meshpost/device/backend.hpp>

#include <atomic>

namespace meshpost::test {

// A device with the host's memory but with its own streams, on which work is enqueued ahead of time
// as on GPUs. It is lost after some work: then its streams and events throw.
class LostStream : public Stream {
 public:
  explicit LostStream(std::shared_ptr<std::atomic<int>> left)
      : left_(std::move(left)), inner_(backend("cpu").open(0)->make_stream()) {}
  void copy(void* target, void const* source, Bytes size) override {
    use();
    inner_->copy(target, source, size);
  }
  void copy(PitchedCopy const& rows) override {
    use();
    inner_->copy(rows);
  }
  void fill(void* target, u8 value, Bytes size) override {
    use();
    inner_->fill(target, value, size);
  }
  void store(u32* word, u32 value) override { inner_->store(word, value); }
  void call(std::function<void()> work) override { inner_->call(std::move(work)); }
  std::shared_ptr<Event> record() override;
  void wait(std::shared_ptr<Event> event) override {
    inner_->call([event = std::move(event)] {
      try {
        event->wait();
      } catch (Error const&) {
        return;  // a lost device's streams go on, as a GPU's do
      }
    });
  }
  void do_synchronize() override {
    inner_->synchronize();
    use();
  }
  void* native() override { return nullptr; }
  void use() {
    if (left_->fetch_sub(1) <= 0)
      throw Error(Kind::device_failed, "use lossy:0", "it fell off its bus", "restart");
  }

 private:
  std::shared_ptr<std::atomic<int>> left_;
  std::unique_ptr<Stream> inner_;
};
class LostEvent : public Event {
 public:
  LostEvent(std::shared_ptr<Event> inner, std::shared_ptr<std::atomic<int>> left)
      : inner_(std::move(inner)), left_(std::move(left)) {}
  bool done() override { return inner_->done(); }
  void wait() override {
    inner_->wait();
    if (*left_ <= 0)
      throw Error(Kind::device_failed, "wait for lossy:0", "it fell off its bus", "restart");
  }
  void then(std::function<void()> action) override { inner_->then(std::move(action)); }

 private:
  std::shared_ptr<Event> inner_;
  std::shared_ptr<std::atomic<int>> left_;
};
inline std::shared_ptr<Event> LostStream::record() {
  return std::make_shared<LostEvent>(inner_->record(), left_);
}
class LostDevice : public Device {
 public:
  explicit LostDevice(int lives) : left(std::make_shared<std::atomic<int>>(lives)) {}
  std::string_view kind() const override { return "lossy"; }
  u32 index() const override { return 0; }
  DeviceInfo const& info() const override { return inner_->info(); }
  Allocation allocate(Bytes size, MemoryKind kind) override { return inner_->allocate(size, kind); }
  Bytes free_memory() override { return inner_->free_memory(); }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<LostStream>(left); }
  std::unique_ptr<Stream> adopt_stream(void* native) override {
    return inner_->adopt_stream(native);
  }
  PointerInfo locate(void const* pointer) override { return inner_->locate(pointer); }
  void do_read(void* h, void const* d, Bytes size) override { inner_->read(h, d, size); }
  void do_write(void* d, void const* h, Bytes size) override { inner_->write(d, h, size); }
  void do_fill(void* target, u8 value, Bytes size) override { inner_->fill(target, value, size); }
  std::shared_ptr<std::atomic<int>> left;

 private:
  std::shared_ptr<Device> inner_ = backend("cpu").open(0);
};

}  // namespace meshpost::test
