#include "net/mpi/frame.hpp"

#include <mpi.h>

#include <atomic>

#include "meshpost/base/config.hpp"

namespace meshpost::net::mpi {
namespace {

// Tags 1 to highest / 2 belong to engines, higher ones are tickets. Both start over when they are
// used up, after at least 16383 of them. Far fewer are in use at a time.
u64 highest_tag() {
  static u64 const highest = [] {
    void* value = nullptr;
    int known = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &known);
    return known ? static_cast<u64>(*static_cast<int*>(value)) : u64{32767};
  }();
  return highest;
}

constexpr char address_begin[] = "mpi1/", memory_begin[] = "mpimem1/";

std::optional<u64> number_behind(std::string const& text, std::string const& begin, u64 most) {
  if (!text.starts_with(begin)) return std::nullopt;
  auto const value = parse_number(std::string_view(text).substr(begin.size()));
  return value && *value <= most ? std::optional<u64>(*value) : std::nullopt;
}

}  // namespace

int Endpoint::tag() const { return static_cast<int>(1 + number % (highest_tag() / 2)); }

Endpoint Endpoint::draw() {
  static std::atomic<u32> drawn{0};
  return {++drawn};
}

u64 draw_ticket() {
  static std::atomic<u64> drawn{0};
  u64 const half = highest_tag() / 2;
  return half + 1 + drawn++ % (highest_tag() - half);
}

std::string address_text(int rank, Endpoint endpoint) {
  return address_begin + std::to_string(rank) + "/" + std::to_string(endpoint.number);
}

std::optional<std::pair<int, Endpoint>> address_from(std::string const& text) {
  auto const slash = text.rfind('/');
  if (slash == std::string::npos) return std::nullopt;
  auto const rank = number_behind(text.substr(0, slash), address_begin, 0x7fffffff);
  auto const number = number_behind(text.substr(slash), "/", 0xffffffff);
  if (!rank || !number) return std::nullopt;
  return std::pair{static_cast<int>(*rank), Endpoint{static_cast<u32>(*number)}};
}

std::string memory_text(u64 key) { return memory_begin + std::to_string(key); }
std::optional<u64> memory_from(std::string const& text) {
  return number_behind(text, memory_begin, ~u64{0});
}

}  // namespace meshpost::net::mpi
