#pragma once
#include <meshpost/array/array.hpp>

#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

namespace meshpost::test {

/// Host memory that counts as a place of its own, as a GPU's does. It knows what was allocated, so
/// that a test can overwrite contents that should not be read any more.
class RecordedContext : public Context {
 public:
  explicit RecordedContext(std::string name, bool reached = true)
      : Context(Place{"pageable", 0}), name_(std::move(name)), reached_(reached) {}
  std::string name() const override { return name_; }
  bool can_use(Context const& other) const override { return &other == this; }
  bool reached_by_copies() const override { return reached_; }

  Allocation allocate(Bytes size) const override {
    auto memory = std::make_shared<std::vector<u8>>(size, poison);
    std::scoped_lock const lock(mutex_);
    memory_.push_back(memory);
    return {memory->data(), size, [memory](void*) mutable { memory.reset(); }};
  }

  /// Overwrites all memory that arrays have here, but for `valid`.
  void poison_all_but(void const* valid) const {
    for (auto const& one : live())
      if (one->data() != valid) std::memset(one->data(), poison, one->size());
  }
  std::size_t allocations() const { return live().size(); }

  static constexpr u8 poison = 0xa5;

 private:
  std::vector<std::shared_ptr<std::vector<u8>>> live() const {
    std::scoped_lock const lock(mutex_);
    std::vector<std::shared_ptr<std::vector<u8>>> all;
    for (auto const& one : memory_)
      if (auto memory = one.lock()) all.push_back(memory);
    return all;
  }

  std::string name_;
  bool reached_;
  mutable std::mutex mutex_;
  mutable std::vector<std::weak_ptr<std::vector<u8>>> memory_;
};

inline std::shared_ptr<RecordedContext const> recorded(std::string name, bool reached = true) {
  return std::make_shared<RecordedContext>(std::move(name), reached);
}

/// Bytes that the array has copied from all places to all places.
template <class T>
u64 copied(Array<T> const& array) {
  u64 sum = 0;
  for (auto const& one : array.copies()) sum += one.bytes;
  return sum;
}

}  // namespace meshpost::test
