#pragma once
#include <utility>

#include "meshpost/array/array.hpp"

// LAMA's names for coherent arrays, so that its concept can be read in code: contexts, arrays that
// are valid on several contexts, accesses. (LAMA is the Library for Accelerated Math Applications.)
// They are thin: array/array.hpp has the rules. LAMA's matrices, vectors and solvers are out of
// scope. Its CommunicationPlan is Plan (array/plan.hpp).

namespace meshpost::lama {

/// A kind of memory. Derive from it to override the functions with LAMA's names.
///
/// A copy is made by the target's context if its cancpy() says so, else by the source's, else by
/// the library, which knows all memory of the host and of devices. If none of them reaches both
/// memories, the bytes go through the host.
class Context : public meshpost::Context {
 public:
  using meshpost::Context::Context;

  /// True if this context uses the memory of `other` in place. Then nothing is copied.
  virtual bool canUseData(meshpost::Context const& other) const {
    return meshpost::Context::can_use(other);
  }
  /// True if this context's memcpy() copies from `source` to `target`; one of them is this one.
  virtual bool cancpy(meshpost::Context const& target, meshpost::Context const& source) const {
    return meshpost::Context::can_copy(target, source);
  }
  virtual void memcpy(meshpost::Context const& target, void* to, meshpost::Context const& source,
                      void const* from, Bytes size) const {
    meshpost::Context::copy(target, to, source, from, size);
  }

  bool can_use(meshpost::Context const& other) const final { return canUseData(other); }
  bool can_copy(meshpost::Context const& target, meshpost::Context const& source) const final {
    return cancpy(target, source);
  }
  void copy(meshpost::Context const& target, void* to, meshpost::Context const& source,
            void const* from, Bytes size) const final {
    memcpy(target, to, source, from, size);
  }
};

using ContextPtr = std::shared_ptr<Context const>;

/// Ordinary memory of the host. It uses pinned memory in place.
class HostContext : public Context {
 public:
  HostContext() : Context(Place{"pageable", 0}) {}
};
/// Pinned memory of the host.
class CUDAHostContext : public Context {
 public:
  CUDAHostContext() : Context(Place{"pinned", 0}) {}
};
/// The memory of a device: a GPU, or a CPU device in its place.
class CUDAContext : public Context {
 public:
  explicit CUDAContext(Device const& device) : Context(At(device).context()->place()) {}
};

template <class T>
using LAMAArray = Array<T>;

template <class T>
class LAMAReadAccess : public ReadAccess<T> {
 public:
  LAMAReadAccess(LAMAArray<T> const& array, ContextPtr context,
                 std::source_location where = std::source_location::current())
      : ReadAccess<T>(array, At(std::move(context)), where) {}
  T const* get() const& { return this->data(); }
  T const* get() const&& = delete;
};

template <class T>
class LAMAWriteAccess : public WriteAccess<T> {
 public:
  /// `keep`: the old values are needed. Without them nothing is copied.
  LAMAWriteAccess(LAMAArray<T>& array, ContextPtr context, bool keep = true,
                  std::source_location where = std::source_location::current())
      : WriteAccess<T>(keep ? array.write(At(std::move(context)), where)
                            : array.write_only(At(std::move(context)), where)) {}
  T* get() const& { return this->data(); }
  T* get() const&& = delete;
};

}  // namespace meshpost::lama
