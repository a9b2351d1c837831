#include "net/ofi/texts.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace meshpost::net::ofi {
namespace {

constexpr std::string_view address_form = "ofi1", memory_form = "ofimem1";

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> fields;
  for (;;) {
    auto const end = text.find('/');
    fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string to_text(Address const& address) {
  std::string native;
  for (char const c : address.native) native += fmt::format("{:02x}", static_cast<u8>(c));
  return fmt::format("{}/{}/{:x}/{}", address_form, address.provider, address.number, native);
}

std::optional<Address> address_from(std::string const& text) {
  auto const fields = split(text);
  if (fields.size() != 4 || fields[0] != address_form) return std::nullopt;
  auto const drawn = number<u32>(fields[2]);
  auto const digits = fields[3];
  if (!drawn || digits.empty() || digits.size() % 2 != 0) return std::nullopt;
  Address address{std::string(fields[1]), *drawn, {}};
  for (u64 i = 0; i < digits.size(); i += 2) {
    auto const byte = number<u8>(digits.substr(i, 2));
    if (!byte) return std::nullopt;
    address.native += static_cast<char>(*byte);
  }
  return address;
}

std::string to_text(RemoteMemory const& memory) {
  return fmt::format("{}/{:x}/{:x}", memory_form, memory.base, memory.key);
}

std::optional<RemoteMemory> memory_from(std::string const& text) {
  auto const fields = split(text);
  if (fields.size() != 3 || fields[0] != memory_form) return std::nullopt;
  auto const base = number<u64>(fields[1]), key = number<u64>(fields[2]);
  if (!base || !key) return std::nullopt;
  return RemoteMemory{*base, *key};
}

}  // namespace meshpost::net::ofi
