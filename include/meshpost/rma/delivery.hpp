#pragma once
#include "meshpost/base/fn.hpp"
#include "meshpost/device/block.hpp"

namespace meshpost {

/// The checked mode of CPU devices (MESHPOST_CHECK=delivery). The ledger keeps the bytes of puts,
/// and the target is filled with a pattern. Only consuming a notification brings the bytes in. So a
/// kernel that reads early reads garbage every time, and one that overwrites early is named. See
/// src/rma/checks/delivery.cpp.
struct DeliveryLedger;

namespace delivery {

#if defined(__CUDA_ARCH__)
MESHPOST_FN inline bool checked(DeliveryLedger* /*ledger*/) { return false; }
MESHPOST_FN inline void put(DeliveryLedger*, Block&, u32, u32, void*, void const*, u64) {}
MESHPOST_FN inline void notify(DeliveryLedger*, Block&, u32, u32, u32 const*) {}
MESHPOST_FN inline void consume(DeliveryLedger*, Block&, u32, u32 const*, u32) {}
MESHPOST_FN inline void use(DeliveryLedger*, Block&, Operation, u32, void const*, u64) {}
MESHPOST_FN inline void put_value(DeliveryLedger*, u32, u32, void const*) {}
MESHPOST_FN inline void wait_until(DeliveryLedger*, Block&, void const*) {}
#else
inline bool checked(DeliveryLedger* ledger) { return ledger != nullptr; }
/// Keeps the bytes of a put from rank `from` to rank `to` in the ledger. One thread of the rank
/// calls each of these.
void put(DeliveryLedger* ledger, Block& block, u32 from, u32 to, void* target, void const* source,
         u64 bytes);
/// Notes a notification, before its counter is raised.
void notify(DeliveryLedger* ledger, Block& block, u32 from, u32 to, u32 const* counter);
/// Brings in what `count` notifications of this counter deliver to rank `to`.
void consume(DeliveryLedger* ledger, Block& block, u32 to, u32 const* counter, u32 count);
/// Ends the rank if it is about to read bytes that have not been delivered.
void use(DeliveryLedger* ledger, Block& block, Operation operation, u32 rank, void const* data,
         u64 bytes);
/// Notes that a word of rank `to` is about to be stored by rank `from`.
void put_value(DeliveryLedger* ledger, u32 from, u32 to, void const* word);
/// A rank has seen this word: brings in the bytes that the ranks which stored it had put to its
/// target before.
void wait_until(DeliveryLedger* ledger, Block& block, void const* word);
#endif

}  // namespace delivery
}  // namespace meshpost
