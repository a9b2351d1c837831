#pragma once
#include <mpi.h>

#include <list>
#include <optional>
#include <string>

namespace meshpost {

/// Short texts between the processes of a communicator. Nothing blocks. So the process that waits
/// for a letter notices if its sender does not take part. (An MPI_Bcast would hang all others.)
class Letters {
 public:
  static constexpr int tag = 32767;  // the highest that every MPI allows

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
