#pragma once
#include <string_view>

#include "meshpost/base/types.hpp"

// libfabric 1.17 puts 80 bytes before a message over tcp;ofi_rxm: 16 of tcp, which begin with the
// version 3, and 64 of rxm.

namespace meshpost::test {

/// The version and the operation of tcp's part: a message (0) or a write (4).
inline bool is_header(std::string_view text) {
  return text[0] == 3 && (text.size() < 2 || text[1] == 0 || text[1] == 4);
}
/// True for this byte of a header, also if the header begins in an earlier piece.
template <u64 byte>
bool is_of_header(std::string_view piece, u64 at) {
  return at < byte ? !is_header(piece) : is_header(piece.substr(at - byte));
}

/// The bytes that a trouble must leave as they are if it changes this bit of a byte
/// (Trouble::spares). libfabric 1.17 itself fails by them (README.md of src/net):
/// - Bits 2 and 3 of tcp's flags ask for an acknowledgement (3: of a write). The sender does not
///   expect it: it takes the first of an empty list, and crashes (tcpx_handle_ack).
/// - Bit 0 of rxm's type makes the message a part of a longer one. When the connection is closed, a
///   loop takes that message out of the wrong list, and never ends (rxm_close_conn).
inline auto harmful_to_libfabric(u32 bit) -> bool (*)(std::string_view, u64) {
  if (bit == 0) return &is_of_header<17>;
  return bit == 2 || bit == 3 ? &is_of_header<2> : nullptr;
}

}  // namespace meshpost::test
