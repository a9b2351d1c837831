#pragma once
// Communication of two-model programs: kernels compute, and between them the host moves bytes.
#include <meshpost/meshpost.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace meshpost::apps {

/// Bytes that go from one device's memory to another's. Devices are numbered over all processes.
struct Message {
  u32 from, to;
  u64 source, target;  ///< offsets in the memories of both, bytes
  u64 size;
};

/// A device of this process in a two-model program.
struct Part {
  std::shared_ptr<Device> device;
  std::shared_ptr<Stream> stream;  ///< its kernels
  std::span<std::byte> memory{};   ///< messages come from here and go here
};

/// Moves the messages of a two-model program: one kind of communication. One thread at a time.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// "copies", "mpi", "nccl".
  virtual std::string name() const = 0;

  /// The loop to play: `body(step)` puts kernels on streams and calls run(). It is called again and
  /// again, or once for a graph that is replayed. So its work may depend on `step`, not on results.
  void prepare(u32 steps, std::function<void(u32)> body);
  /// Plays the loop, and returns the seconds that it took when it is done on all devices and in all
  /// processes. Collective.
  virtual double play();
  /// Seconds of communication in a loop, which began when the kernels before it had ended. Summed
  /// over all calls, as in the thesis. Or, if the loop is a graph, the time of a graph of its
  /// messages alone, which runs now. Then results are lost.
  virtual double communication() { return communication_; }

  /// For the body: carries out the messages behind all work that is on the streams by now. Later
  /// work on the streams finds the bytes. All processes call it with the same messages.
  void run(std::span<Message const> messages);
  /// For the body: work that is put on streams from now on begins when all devices have done the
  /// work that is on their streams by now. All processes call it.
  void barrier();

  /// The devices of this process; the first one's number over all processes.
  std::vector<Part> const& parts() const { return parts_; }
  u32 first() const { return first_; }
  /// True for a device of this process.
  bool is_mine(u32 device) const { return device >= first_ && device < first_ + parts_.size(); }
  /// Of a device of this process.
  Part const& part(u32 device) const { return parts_[device - first_]; }

 protected:
  Exchange(std::vector<Part> parts, u32 first) : parts_(std::move(parts)), first_(first) {}
  virtual void carry(std::span<Message const> messages) = 0;
  /// barrier() on streams.
  virtual void do_barrier() {}
  /// Returns when all processes are here.
  virtual void meet() = 0;
  void synchronize();

  virtual void do_prepare() {}
  u32 steps_ = 0;
  std::function<void(u32)> body_;

 private:
  std::vector<Part> parts_;
  u32 first_;
  double communication_ = 0;
  virtual bool on_streams() const { return false; }
};

/// Makes the kind of communication that `kind` names, for the devices of `world`. "auto" is the
/// fastest that there is: NCCL if all devices are whole GPUs of one process, else copies.
/// `memories`: of each device of this process. Collective.
/// \throws Error(bad_argument) if the kind is unknown, is not built in, or can't serve these
/// devices
std::unique_ptr<Exchange> make_exchange(std::string const& kind, World& world,
                                        std::vector<std::span<std::byte>> const& memories);

}  // namespace meshpost::apps
