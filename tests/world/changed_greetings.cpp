// A bit changes while a process joins: it calls again, and gets in.
#include <random>

#include "support/troubles.hpp"
#include "world/players.hpp"
#include "world/sides.hpp"

namespace meshpost {
namespace {

using namespace test;

// The bytes of a greeting in both directions. After the last bytes back, process 0 lets the caller
// in. From then on the job has begun for it, and the end of the connection ends the job.
std::pair<u64, u64> bytes_of_greeting(Job const& job) {
  Tls::Context const context(*Secret::from_hex(job.secret));
  Sides sides(context);
  auto const said = sides.greet();
  sides.caller.say(wire::pack({.type = wire::Type::hello},
                              greeting::pack({job.process, job.processes, greeting::version(),
                                              getpid(), join::host_name(), job.identity})));
  return {said[0].size() + said[2].size() + sides.caller.out.size(), said[1].size()};
}

struct Changed {
  u64 at;
  bool forth;
};

std::vector<std::optional<Error>> join_with(Changed const& changed, bool& happened) {
  auto const plan = [&](auto const&, u32 number) {
    return number == 0
               ? Trouble{.fault = Trouble::Fault::flip, .at = changed.at, .forth = changed.forth}
               : Trouble{};
  };
  Troubles const troubles(std::random_device{}(), plan);
  auto jobs = make_jobs(2);
  jobs[1].rendezvous = way_to(jobs[1].rendezvous, troubles.address());
  for (auto& job : jobs) job.timeout = 4s;
  auto ended = play(
      jobs, [](Processes& processes) { EXPECT_EQ(processes.exchange(1, "meet", "").size(), 2u); });
  happened = troubles.fault().has_value();
  return ended;
}

// MESHPOST_TEST_ALL_BYTES: each byte, not every eleventh.
TEST(Greetings, that_are_changed_on_their_way_are_made_anew) {
  auto const [forth, back] = bytes_of_greeting(make_jobs(2)[1]);
  bool const all = std::getenv("MESHPOST_TEST_ALL_BYTES");
  u64 const step = all ? 1 : 11, first = all ? 0 : std::random_device{}() % step;
  for (u64 at = first; at < forth + back; at += step) {
    Changed const changed{at < forth ? at : at - forth, at < forth};
    SCOPED_TRACE(testing::Message()
                 << "byte " << changed.at << (changed.forth ? " forth" : " back"));
    auto const begin = Clock::now();
    bool happened = false;
    auto const ended = join_with(changed, happened);
    EXPECT_TRUE(happened);
    expect_none(ended);
    EXPECT_LT(Clock::now() - begin, 3s);
  }
}

}  // namespace
}  // namespace meshpost
