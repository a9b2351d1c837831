#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "variants.hpp"

namespace bandwidth {

/// Two variants to set side by side: how much longer one takes than the other.
struct Comparison {
  std::string title;     ///< such as "error of the model"
  std::string of, with;  ///< names of variants
  /// The two differ by peer access: pairs that it can't help are controls, marked as such.
  bool peer_access = false;
};

struct Plan {
  std::vector<std::shared_ptr<meshpost::Device>> devices;
  std::vector<meshpost::Place> places;
  std::vector<Variant> variants;
  std::vector<meshpost::Bytes> sizes;
  unsigned repetitions = 5;
  bool check = true;
  std::uint64_t seed = 0;                  ///< of the copied bytes
  std::vector<std::uint32_t> cpu_nodes{};  ///< NUMA node of each process; empty: not bound
  std::string fingerprint{};               ///< of the machine
  std::vector<Comparison> comparisons{};
};

/// Result for one variant, pair of places and size.
struct Result {
  meshpost::Place from, to;
  std::string variant;
  meshpost::Bytes size{};
  double seconds = 0;  ///< median
  double least = 0;    ///< seconds of the fastest
  bool checked = false;
  std::string problem;  ///< empty if all went well
  std::string path{};   ///< between processes: the one that the bytes took

  double rate() const {
    return seconds > 0 ? static_cast<double>(size.value) / seconds : 0;  // bytes/s
  }
};

/// Memory of one place: `source` holds random bytes of its own, `target` the copied bytes.
class Areas {
 public:
  Areas(Plan const& plan, meshpost::Place const& place, meshpost::Bytes size);
  void const* source() const { return source_.data(); }
  /// Begins behind a border that no copy may touch; another border follows the bytes.
  void* target() const { return target_.as<char>() + border; }
  /// Fills target and borders with a byte that changes from call to call.
  void poison(meshpost::Bytes size);
  /// Checks the target after `size` bytes of `from`'s source came. Returns the fault; empty if
  /// none.
  std::string compare(Areas const& from, meshpost::Bytes size);

 private:
  static constexpr std::uint64_t border = 4096;
  void fill(void* memory, unsigned char value, meshpost::Bytes size);
  std::vector<unsigned char> read(void const* memory, meshpost::Bytes size);

  meshpost::Device* device_ = nullptr;  // null: host memory
  meshpost::Allocation source_, target_;
  std::vector<unsigned char> expected_;  // content of the source, kept on the host
  unsigned char poison_ = 0x11;
};

/// Measures all. After each, tells `progress` how many are done and how many there are.
std::vector<Result> measure(Plan const& plan,
                            std::function<void(unsigned, unsigned)> const& progress);

}  // namespace bandwidth
