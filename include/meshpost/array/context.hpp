#pragma once
#include <concepts>
#include <memory>
#include <string>

#include "meshpost/device/device.hpp"
#include "meshpost/fabric/place.hpp"

namespace meshpost {

/// A place that arrays can be valid in. Its functions may be overridden, for memory that the
/// library doesn't know, or for copies of one's own. They are called by several threads at once,
/// and may throw: then the array stays as it was.
///
/// name(), can_use(), can_copy() and reached_by_copies() are called while a lock of the array is
/// held. So they return at once, and don't call the array. allocate() and copy() are called without
/// it: other threads may ask the array meanwhile, and begin accesses that copy nothing.
///
/// Source: LAMA's Context.
class Context {
 public:
  explicit Context(Place place) : place_(std::move(place)) {}
  virtual ~Context() = default;
  Context(Context const&) = delete;
  Context& operator=(Context const&) = delete;

  Place const& place() const { return place_; }
  /// As it stands in messages and tables.
  virtual std::string name() const { return place_.name(); }

  /// True if programs of this place use the memory of `other` directly, so that nothing is copied.
  /// The host uses all memory of the host: pageable, pinned, and that of CPU devices. Pinned memory
  /// is needed by copy engines, so only other pinned memory can replace it. A device uses its own
  /// memory only. A CPU device too: so a program copies to CPU devices what it copies to GPUs.
  virtual bool can_use(Context const& other) const;

  /// \throws Error(bad_argument) if the place is a device that copies don't know
  /// (use_devices_for_copies); Error(out_of_memory)
  virtual Allocation allocate(Bytes size) const;

  /// True if copy() of this context makes copies from `source` to `target`. One of them is this
  /// one. First the target's context is asked, then the source's.
  virtual bool can_copy(Context const& target, Context const& source) const;
  /// Returns when the bytes have arrived.
  virtual void copy(Context const& target, void* to, Context const& source, void const* from,
                    Bytes size) const;

  /// True if the library's copies reach its memory. They are made where neither context makes the
  /// copy. Otherwise the bytes go through the host, in two copies.
  virtual bool reached_by_copies() const { return true; }

 private:
  Place place_;
};

using ContextPtr = std::shared_ptr<Context const>;

/// The context of a place, one for each place. Thread-safe.
ContextPtr context_at(Place const& place);

/// Where an access takes place: at a Place, a Device or a Context; the host if nothing is said.
/// Logical devices have the memory of the physical one.
class At {
 public:
  At() : At(Place{"pageable", 0}) {}
  At(Place const& place) : context_(context_at(place)) {}
  At(Device const& device) : At(Place{std::string(device.kind()), device.index()}) {}
  /// \throws Error(bad_argument) if it is null
  At(std::shared_ptr<Device> const& device);
  template <std::convertible_to<ContextPtr> Pointer>
  At(Pointer context) : context_(checked(std::move(context))) {}

  ContextPtr const& context() const { return context_; }

 private:
  static ContextPtr checked(ContextPtr context);
  ContextPtr context_;
};

}  // namespace meshpost
