#pragma once
#include "meshpost/base/types.hpp"

namespace meshpost::test {

/// Registers a kind of device, "boxed", that is a CPU device whose memory the host acts as if it
/// could not reach by loads and stores: what comes to it comes by commands, and its copy engines
/// are streams. So a World of "cpu:2,boxed:0,1" is to the host what one of CPU devices and GPUs is.
/// Commands are carried out while its ranks run, and not behind their end. Idempotent.
///
/// In a job, "0:1,2:2" in MESHPOST_TEST_REFUSED has process 0 refused to map memory of 1's, and 2
/// to share its own with anybody.
void register_boxed();

/// Which process of a job this thread plays, where several are of one process.
void play_process(u32 number);

}  // namespace meshpost::test
