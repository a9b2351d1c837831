#pragma once
#include <optional>
#include <tuple>
#include <vector>

#include "copy/job/state.hpp"

namespace meshpost {

/// One copy between memory of this process and exposed memory: bytes, or a block of rows. A plain
/// value.
class RemoteCopy {
 public:
  enum class Way : u8 { put, get };
  struct Block {
    Pitch here, there;
    BlockShape shape;
  };
  RemoteCopy(Way way, RemoteBytes const& there, void* here)
      : way_(way), there_(there), here_(static_cast<char*>(here)) {}
  /// \throws Error(bad_argument) for a block that reaches beyond its range
  RemoteCopy(Way way, RemoteBytes const& there, void* here, Block const& block);

  /// Returns when the bytes are there.
  void make() const;
  /// Checks all that can be checked in this process before it returns.
  copying::StatePtr start(CopyOptions const& options) const;

  void const* here() const { return here_; }
  Bytes size() const { return there_.size(); }
  auto place() const {  // for the order of targets
    return std::tuple(there_.exposure_.get(), there_.process_, there_.offset_);
  }

 private:
  std::shared_ptr<JobMemory::State> const& job() const { return there_.exposure_->job; }
  u32 process() const { return there_.process_; }
  copying::PartInfo const& part() const { return there_.exposure_->parts[process()]; }
  CopyPath path() const { return there_.exposure_->known[process()].path; }
  bool by_message() const { return path() == CopyPath::staged || path() == CopyPath::network; }
  bool by_address() const { return path() == CopyPath::own || path() == CopyPath::mapped; }
  bool nothing() const { return there_.size() == 0 || (block_ && block_bytes() == 0); }
  u64 block_bytes() const {
    return block_->shape.width * block_->shape.rows * block_->shape.slices;
  }
  char* begin_here() const { return there_.exposure_->here[process()] + there_.offset_; }
  std::string name() const;
  Error released() const;

  copying::Location locate_here() const;
  void make_counted() const;
  void make_inside() const;
  Copy start_by_address(CopyOptions const& options) const;
  copying::StatePtr start_held(CopyOptions const& options) const;
  copying::StatePtr ask() const;
  copying::StatePtr begin_asking() const;
  void by_kernel() const;
  std::vector<RemoteCopy> rows() const;

  Way way_;
  RemoteBytes there_;
  char* here_;
  std::optional<Block> block_{};
};

}  // namespace meshpost
