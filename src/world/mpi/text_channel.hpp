#pragma once
#include <mpi.h>

#include <list>
#include <optional>
#include <string>

namespace meshpost {

/// Short texts between the processes of a communicator. Nothing blocks. So the process that waits
/// for a text notices if its sender does not take part. (An MPI_Bcast would hang all others.)
class TextChannel {
 public:
  static constexpr int tag = 32767;  // the highest that every MPI allows

  explicit TextChannel(MPI_Comm communicator) : communicator_(communicator) {}
  ~TextChannel();
  TextChannel(TextChannel const&) = delete;
  TextChannel& operator=(TextChannel const&) = delete;

  struct Text {
    int from = 0;
    std::string text;
  };
  void send(int to, std::string text);
  std::optional<Text> next();

 private:
  struct Sent {
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  MPI_Comm communicator_;
  std::list<Sent> sent_;
};

}  // namespace meshpost
