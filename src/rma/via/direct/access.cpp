#include "rma/via/direct/access.hpp"

#include <cstring>

namespace meshpost::detail {
namespace {

template <class Word>
void store_as(Delivery const& delivery) {
  Word value{};
  delivery.bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
  memory::store(delivery.message.target<Word>(), value, Order::system);
}

void store_word(Delivery const& delivery) {
  switch (delivery.bytes.size()) {
    case 1: return store_as<u8>(delivery);
    case 2: return store_as<unsigned short>(delivery);
    case 4: return store_as<u32>(delivery);
    default: return store_as<u64>(delivery);
  }
}

}  // namespace

void HostAccess::deliver(Delivery const& delivery) {
  auto const& [message, bytes, keep] = delivery;
  if (message.type == via::Message::Type::store) return store_word(delivery);
  if (!bytes.empty()) std::memcpy(message.target(), bytes.data(), bytes.size());
  auto const& count = message.signal;
  if (!count.any()) return;
  if (count.distance() != 0) memory::store_relaxed(count.origin_word(), count.origin);
  // Releases the bytes above to the rank that acquires the count.
  memory::add(count.word(), count.value(), Order::system);
}

void HostAccess::read(void const* source, u64 bytes, Take take) {
  take({static_cast<char const*>(source), bytes}, nullptr);
}

void HostAccess::write(void* target, std::string_view bytes, Keep /*keep*/,
                       std::function<void()> then) {
  std::memcpy(target, bytes.data(), bytes.size());
  then();
}

}  // namespace meshpost::detail
