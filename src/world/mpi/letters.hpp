#pragma once
#include <mpi.h>

#include <list>
#include <optional>
#include <string>

namespace meshpost {

/// Short texts between the processes of a communicator. Nothing blocks: a process that takes no
/// part is found out by whoever waits for its letter. (In an MPI_Bcast it would hang all others.)
class Letters {
 public:
  static constexpr int tag = 32767;  // the highest that every MPI has

  explicit Letters(MPI_Comm communicator) : communicator_(communicator) {}
  ~Letters();
  Letters(Letters const&) = delete;
  Letters& operator=(Letters const&) = delete;

  struct Letter {
    int from = 0;
    std::string text;
  };
  void send(int to, std::string text);
  std::optional<Letter> next();

 private:
  struct Sent {
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  MPI_Comm communicator_;
  std::list<Sent> sent_;
};

}  // namespace meshpost
