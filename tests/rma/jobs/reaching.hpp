#pragma once

namespace meshpost::test {

/// Registers an engine, "reaching:ENGINE", that is ENGINE and reaches memory of boxed devices
/// (boxed.hpp) itself, as network cards reach that of GPUs; "unreaching:ENGINE" says so, and then
/// doesn't; "blind:ENGINE" doesn't say so. When one ends it prints which ways writes went: "wrote
/// into a box", "wrote out of a box". Idempotent.
void register_reaching();

}  // namespace meshpost::test
