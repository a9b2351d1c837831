#pragma once
#include "meshpost/base/types.hpp"

namespace meshpost::test {

/// Registers a kind of device, "boxed". It is a CPU device, but the host acts as if it could not
/// reach its memory by loads and stores. Messages arrive by commands, and streams are its copy
/// engines. So for the host a World of "cpu:2,boxed:0,1" is like one of CPU devices and GPUs.
/// Commands are carried out while its ranks run, not after their end. Idempotent.
///
/// In a job, "0:1,2:2" in MESHPOST_TEST_REFUSED means: process 0 may not map memory of process 1,
/// and process 2 may not share its own with any process.
void register_boxed();

/// The process of a job as which this thread acts, if several are threads of one process.
void play_process(u32 number);

}  // namespace meshpost::test
