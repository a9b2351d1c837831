#pragma once
#include <string>

namespace meshpost::test {

/// Registers a kind of device, "boxed", that is a CPU device whose memory the host acts as if it
/// could not reach by loads and stores: what comes to it comes by letters, and its copy engines are
/// streams. So a World of "cpu:2,boxed:0,1" is to the host what one of CPU devices and GPUs is.
/// Letters are opened while its ranks run, and not behind their end. Idempotent.
void register_boxed();

}  // namespace meshpost::test
