// Connections that are slow, split their bytes, change them, end or fall silent. The processes of a
// job complete their exchanges, or all end with an error that says why.
#include <random>

#include "support/troubles.hpp"
#include "world/players.hpp"

namespace meshpost {
namespace {

using namespace test;

constexpr u32 count = 3, rounds = 12;

// A process's part: the same for each process that compares it.
std::string part(u32 process, u32 round) {
  std::mt19937_64 random(process * 1000 + round);
  std::string bytes(random() % (round % 4 == 0 ? 20'000 : 200), '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

void work(Processes& processes) {
  for (u32 round = 0; round < rounds; ++round) {
    processes.post(2, Processes::everyone, part(processes.number(), round));
    auto const parts = processes.exchange(1, "compare", part(processes.number(), round));
    ASSERT_EQ(parts.size(), count);
    for (u32 process = 0; process < count; ++process)
      ASSERT_EQ(parts[process], part(process, round));
  }
  // All messages have come, in order: they were sent before the parts.
  std::vector<u32> came(count);
  for (auto const& message : processes.take_messages(2))
    ASSERT_EQ(message.bytes, part(message.from, came.at(message.from)++));
  for (u32 process = 0; process < count; ++process)
    ASSERT_EQ(came[process], process == processes.number() ? 0 : rounds);
}

// All but process 0 reach it through the troubles.
std::vector<Job> make_jobs_by(Troubles const& troubles) {
  auto jobs = make_jobs(count);
  auto const way = way_to(jobs[0].rendezvous, troubles.address());
  for (u32 process = 1; process < count; ++process) jobs[process].rendezvous = way;
  return jobs;
}

class Slow : public testing::TestWithParam<Trouble> {};

TEST_P(Slow, connections_carry_all_there_is) {
  Troubles const troubles(std::random_device{}(), [](auto const&, u32) { return GetParam(); });
  expect_none(play(make_jobs_by(troubles), work));
  EXPECT_FALSE(troubles.fault());
}
INSTANTIATE_TEST_SUITE_P(And, Slow,
                         testing::Values(Trouble{.delay = 5ms}, Trouble{.most_at_once = 50},
                                         Trouble{.delay = 500us, .most_at_once = 3000},
                                         Trouble{.bytes_per_second = 300'000}));

struct Case {
  char const* name;
  Trouble::Fault fault;
  u32 felt;  // rounds in which errors must come: in some all bytes pass before the fault
};
class Faulty : public testing::TestWithParam<Case> {};

TEST_P(Faulty, connections_end_all_processes_in_time_and_nobody_gets_what_is_wrong) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  u32 felt = 0, errors = 0;
  u32 const wanted = GetParam().felt;
  for (u32 round = 0; felt < wanted && round < 20 * wanted; ++round) {
    Trouble trouble{.most_at_once = random() % 2 ? u64{1} << 16 : 300};
    trouble.fault = GetParam().fault;
    trouble.at = random() % (random() % 5 == 0 ? 300 : 60'000);  // some are during the greeting
    trouble.forth = random() % 2 != 0;
    SCOPED_TRACE(testing::Message() << "round " << round << ", byte " << trouble.at);
    u32 const victim = static_cast<u32>(random() % 2);
    Troubles const troubles(
        random(), [&](auto const&, u32 number) { return number == victim ? trouble : Trouble{}; });
    auto jobs = make_jobs_by(troubles);
    for (auto& job : jobs) job.silence = 1s, job.timeout = 2s;
    auto const ended = play(jobs, work);
    auto const fault = troubles.fault();
    if (!fault) {
      expect_none(ended);
      continue;
    }
    EXPECT_LT(Clock::now() - *fault, 2s + 2s);
    u32 const before = errors;
    for (auto const& error : ended) {
      if (!error) continue;  // it had ended before, or called again
      ++errors;
      EXPECT_TRUE(error->kind() == Kind::peer_lost || error->kind() == Kind::deadline ||
                  error->kind() == Kind::bad_environment)
          << error->what();
      EXPECT_TRUE(error->operation() == "compare" || error->operation() == "join the job" ||
                  error->operation().starts_with("meet at"))
          << error->what();
      std::string const text = error->what();
      EXPECT_TRUE(text.find("process ") != std::string::npos ||
                  text.find("missing: ") != std::string::npos ||
                  text.find("what listens at") != std::string::npos)
          << text;
    }
    if (errors > before) ++felt;
  }
  EXPECT_EQ(felt, wanted);
  EXPECT_GT(errors, felt);  // usually all three processes end
}
INSTANTIATE_TEST_SUITE_P(That, Faulty,
                         testing::Values(Case{"flip", Trouble::Fault::flip, 15},
                                         Case{"reset", Trouble::Fault::reset, 15},
                                         Case{"stall", Trouble::Fault::stall, 3}),
                         [](auto const& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace meshpost
