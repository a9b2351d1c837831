#pragma once
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshpost/array/array.hpp"
#include "meshpost/array/stream_exchange.hpp"
#include "meshpost/base/error.hpp"

// LAMA's names for coherent arrays and for exchanges by a plan, so that its concept can be read in
// code: contexts, arrays that are valid on several contexts, accesses, communication plans. (LAMA
// is the Library for Accelerated Math Applications.) They are thin: array/array.hpp and
// array/stream_exchange.hpp have the rules. LAMA's matrices, vectors and solvers are out of scope.

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

/// LAMA has two plans, one to send and one to receive. Here one plan has both.
using CommunicationPlan = Plan;

/// A step of the exchange on all devices of this process, in place: for each device, in the order
/// of World::devices(), an array of its own elements, with its halo behind them. It returns when
/// the halos are there. LAMA's arrays have the halo alone. \throws as StreamExchange::exchange
template <class T>
void exchangeByPlan(StreamExchange<T> const& exchange, std::vector<T*> const& arrays,
                    std::source_location where = std::source_location::current()) {
  std::vector<std::span<T>> spans;
  for (u32 device = 0; device < arrays.size(); ++device)
    spans.emplace_back(arrays[device], exchange.size(device));
  exchange.exchange(spans, where);
}
/// The same for coherent arrays: each is brought up to date at its device, and then is valid there
/// alone. \throws also as Array::write; Error(bad_argument), before any access, for another number
/// of arrays
template <class T>
void exchangeByPlan(World const& world, StreamExchange<T> const& exchange,
                    std::vector<std::reference_wrapper<LAMAArray<T>>> const& arrays,
                    std::source_location where = std::source_location::current()) {
  auto const devices = world.devices().size();
  if (arrays.size() != devices)
    throw Error(Kind::bad_argument, "exchangeByPlan",
                std::to_string(arrays.size()) + " arrays were given; this process has " +
                    std::to_string(devices) + " devices",
                "give an array of each device, in the order of World::devices()");
  std::vector<WriteAccess<T>> accesses;
  std::vector<std::span<T>> spans;
  for (u32 device = 0; device < devices; ++device) {
    accesses.push_back(arrays[device].get().write(At(world.devices()[device]), where));
    spans.emplace_back(accesses.back().data(), accesses.back().size());
  }
  exchange.exchange(spans, where);
}

}  // namespace meshpost::lama
