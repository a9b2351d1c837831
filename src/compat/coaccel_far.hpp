#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compat/coaccel_network.hpp"
#include "meshpost/copy/copy.hpp"

// COACCEL's MPI devices: addresses that stand for memory of another process, and copies from and
// to them.

namespace meshpost::coaccel {

/// An open MPI device.
struct FarDevice {
  FarDevice(std::shared_ptr<Network> over, LinkKey const& opened)
      : network(std::move(over)), key(opened) {}
  ~FarDevice();
  FarDevice(FarDevice const&) = delete;
  FarDevice& operator=(FarDevice const&) = delete;

  std::shared_ptr<Network> const network;
  LinkKey const key;
};

/// Opens "mpi:RANK" or "mpi:RANK:ID". \throws as Network::open, and Error(bad_argument) for other
/// names, Error(bad_environment) in a build without MPI, Error(misuse) before coaccel_mpi_init
std::shared_ptr<FarDevice> open_far(std::string const& name);

/// Addresses that stand for `size` bytes of the other process. Nobody can read or write there.
/// \throws Error(bad_argument) for 0 bytes; Error(out_of_memory)
Allocation far_addresses(std::shared_ptr<FarDevice> device, Bytes size);

/// Pieces that are being copied. Those to an MPI device are a message to its process, those from
/// it are one from there. Others are a batch of this process.
class Pieces {
 public:
  /// \throws as copy_batch, and Error(bad_argument) for pieces beyond an MPI device's addresses,
  /// and for pieces from one MPI device to another
  Pieces(char const* operation, std::vector<Segment> const& segments);
  /// Waits for the end, so that nothing uses the memory any more.
  ~Pieces();
  Pieces(Pieces const&) = delete;
  Pieces& operator=(Pieces const&) = delete;
  /// Returns when all have arrived. \throws the error of the first that has not
  void wait();

 private:
  struct Far {
    std::shared_ptr<FarDevice> device;
    Way way = Way::out;
    std::vector<Part> parts{};
    std::shared_ptr<Message> message{};
  };
  Far& far(std::shared_ptr<FarDevice> const& device, Way way);

  std::vector<Far> far_;
  std::optional<Copy> here_;
};

}  // namespace meshpost::coaccel
