#include "world/mpi/text_channel.hpp"

#include <utility>

namespace meshpost {
namespace {

template <class Sent>
std::list<Sent>& kept_for_good() {
  static auto* const all = new std::list<Sent>;
  return *all;
}

}  // namespace

// Texts that were not yet received stay with MPI. So their bytes must live on.
TextChannel::~TextChannel() {
  for (auto at = sent_.begin(); at != sent_.end();) {
    auto const one = at++;
    int over = 0;
    MPI_Test(&one->request, &over, MPI_STATUS_IGNORE);
    if (over) continue;
    MPI_Request_free(&one->request);
    auto& kept = kept_for_good<Sent>();
    kept.splice(kept.end(), sent_, one);
  }
}

void TextChannel::send(int to, std::string text) {
  auto& one = sent_.emplace_back(Sent{std::move(text)});
  MPI_Isend(one.text.data(), static_cast<int>(one.text.size()), MPI_BYTE, to, tag, communicator_,
            &one.request);
}

std::optional<TextChannel::Text> TextChannel::next() {
  int there = 0, size = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  MPI_Improbe(MPI_ANY_SOURCE, tag, communicator_, &there, &message, &status);
  if (!there) return std::nullopt;
  MPI_Get_count(&status, MPI_BYTE, &size);
  Text received{status.MPI_SOURCE, std::string(static_cast<std::size_t>(size), '\0')};
  MPI_Mrecv(received.text.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  return received;
}

}  // namespace meshpost
