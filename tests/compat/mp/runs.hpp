#pragma once
// Jobs that tests of several roles run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/job.hpp"

namespace meshpost::test {

/// The processes act as if they were on hosts of their own.
inline void run_out_of_reach(std::string const& role, u32 processes) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "built without libfabric's headers";
  Job job(role, processes, {}, [](u32 process) {
    return Variables{{"MESHPOST_NODE", "node-" + std::to_string(process)}};
  });
  expect_well(job.wait());
}

/// Process 1 is killed when both have said "waits". Process 0 says its error.
inline void expect_the_loss_is_seen(std::string const& role) {
  Job job(role, 2);
  job.wait_for(0, "waits");
  job.wait_for(1, "waits");
  job.kill(1);
  auto const& all = job.wait();
  EXPECT_THAT(all[0].out,
              testing::AllOf(testing::HasSubstr("process 1"), testing::HasSubstr("[peer lost]")));
  EXPECT_LT(all[0].seconds, 10);
}

}  // namespace meshpost::test
