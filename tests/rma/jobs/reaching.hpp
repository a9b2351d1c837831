#pragma once

namespace meshpost::test {

/// Registers three engines. "reaching:ENGINE" is ENGINE and itself reaches memory of boxed devices
/// (boxed.hpp), as network cards reach memory of GPUs. "unreaching:ENGINE" claims so but fails to.
/// "blind:ENGINE" does not claim so. When an engine ends it prints the ways of writes: "wrote into
/// a box", "wrote out of a box". Idempotent.
void register_reaching();

}  // namespace meshpost::test
