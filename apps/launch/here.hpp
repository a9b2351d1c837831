#pragma once
#include <memory>
#include <string>
#include <vector>

#include "guard.hpp"
#include "place.hpp"
#include "spawn.hpp"

namespace meshpost::launch {

/// Processes of this host, children of this process.
class Here : public Place {
 public:
  explicit Here(Reports& reports);
  ~Here() override;
  Here(Here const&) = delete;
  Here& operator=(Here const&) = delete;

  /// \throws NotStarted
  void start(u32 process, Spawn const& spawn);

  void watch(Poller& poller) override;
  void collect(pid_t child) override;
  void signal(int number) override;
  void give(std::string bytes) override;
  bool open() const override;
  void close() override;

 private:
  struct Member {
    u32 process;
    pid_t pid;
    bool ended;  // but not reaped: until the job's end its number stays its own
  };
  struct Stream {
    u32 process;
    int number;
    Fd fd;
  };

  void collect(Member& member);
  bool read_some(Stream& stream);
  void drain(Stream& stream);
  void end(Stream& stream);
  void write_input();

  Reports& reports_;
  Guard guard_;
  std::vector<Member> members_;
  std::vector<std::unique_ptr<Stream>> streams_;
  Fd input_;  // of process 0
  std::string given_;
};

}  // namespace meshpost::launch
