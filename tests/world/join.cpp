// Who gets into a job, who does not, and what they are told.
#include "world/join.hpp"

#include <fcntl.h>

#include <future>

#include "world/players.hpp"

namespace meshpost {
namespace {

using namespace test;

// -- numbers, secrets, versions

TEST(Joining, with_what_does_not_fit_is_refused_and_the_others_get_in) {
  auto jobs = make_jobs(3);
  auto first = joining(jobs[0]), second = joining(jobs[1]);
  auto wrong = jobs[2];
  wrong.secret = Secret(random_bytes()).hex();
  EXPECT_TRUE(says(error_of_joining(wrong), Kind::bad_environment, {"secret", "MESHPOST_SECRET"}));
  wrong = jobs[2];
  wrong.process = 5;
  EXPECT_TRUE(says(error_of_joining(wrong), Kind::bad_environment, {"process 5", "counts 3"}));
  wrong = jobs[2];
  wrong.processes = 4;
  EXPECT_TRUE(says(error_of_joining(wrong), Kind::bad_environment,
                   {"process 2 believes that it is one of 4, process 0 counts 3"}));
  auto third = joining(jobs[2]);
  expect_none({first.get(), second.get(), third.get()});
}

TEST(Joining, with_a_number_that_is_taken_is_refused) {
  auto jobs = make_jobs(3);
  auto first = joining(jobs[0]), one = joining(jobs[1]), other = joining(jobs[1]);
  EXPECT_TRUE(comes_true([&] {
    return one.wait_for(0s) == std::future_status::ready ||
           other.wait_for(0s) == std::future_status::ready;
  }));
  auto third = joining(jobs[2]);
  auto errors = std::vector{one.get(), other.get()};
  if (!errors[0]) std::swap(errors[0], errors[1]);
  ASSERT_TRUE(errors[0]);
  EXPECT_TRUE(
      says(*errors[0], Kind::bad_environment,
           {"number 1 is taken by process " + std::to_string(getpid()) + " of " + join::host_name(),
            "MESHPOST_PROCESS"}));
  expect_none({errors[1], first.get(), third.get()});
}

TEST(Joining, with_another_version_is_refused_whatever_else_it_says) {
  auto jobs = make_jobs(2);
  auto first = joining(jobs[0]);
  auto const secret = *Secret::from_hex(jobs[0].secret);
  greeting::Hello mine{1, 2, greeting::version() + 1, 1, "elsewhere", random_bytes()};
  for (bool const foreign : {false, true}) {
    Line line(connect_to(jobs[1].rendezvous), wire::most_before_greeting);
    auto const first_words = await(line, wire::Type::hello);
    ASSERT_TRUE(first_words);
    auto const challenge = greeting::read_challenge(first_words->bytes);
    auto bytes = greeting::hello(mine, challenge, secret);
    if (foreign) {  // a layout that has only its beginning in common
      auto const said = wire::Packer().value(u32{1}).value(u32{2}).value(u32{77}).take();
      std::string proven(challenge.begin(), challenge.end());
      bytes = wire::Packer().text(said).value(secret.proof("hello" + proven + said)).take();
    }
    send_now(line, {.type = wire::Type::hello}, bytes);
    auto const refusal = await(line, wire::Type::refusal);
    ASSERT_TRUE(refusal);
    EXPECT_TRUE(says(wire::unpack_error(refusal->bytes), Kind::version_mismatch,
                     {"process 1", foreign ? "0x4d" : "", "one version of the library"}));
  }
  expect_none({joining(jobs[1]).get(), first.get()});
}

// -- those who do not come

TEST(Joining, names_the_missing_in_all_that_have_come) {
  auto jobs = make_jobs(4);
  jobs[0].patience = 500ms;
  auto third = joining(jobs[2]);
  pollfd calls{jobs[0].listener, POLLIN, 0};
  EXPECT_EQ(poll(&calls, 1, 30'000), 1);  // it calls before process 0 begins to count
  EXPECT_TRUE(says(error_of_joining(jobs[0]), Kind::deadline,
                   {"2 of 4 processes came within 0.5 s; missing: 1, 3"}));
  auto const told = third.get();
  ASSERT_TRUE(told);
  EXPECT_TRUE(says(*told, Kind::deadline, {"missing: 1, 3"}));
}

TEST(Joining, ends_at_once_when_one_that_had_come_is_lost) {
  auto jobs = make_jobs(4);
  for (auto& job : jobs) job.patience = std::chrono::hours(1);
  auto first = joining(jobs[0]);
  auto second = join::enter(jobs[1]);
  join::enter(jobs[2]).reset();
  auto const lost = await(*second, wire::Type::lost);
  EXPECT_TRUE(lost && lost->header.process == 2);
  EXPECT_TRUE(await(*second, wire::Type::refusal));
  second.reset();  // for which process 0 would wait
  auto const told = first.get();
  ASSERT_TRUE(told);
  EXPECT_TRUE(says(*told, Kind::peer_lost, {"join the job", "process 2"}));
}

TEST(Joining, gives_up_where_nobody_listens_and_says_where) {
  Port const port(false);
  auto job = make_caller(port.address());
  job.patience = 100ms;
  EXPECT_TRUE(says(error_of_joining(job), Kind::deadline,
                   {port.address(), "process 0 was not there within 0.1 s", "refused"}));
  close(port.socket);
}

TEST(Joining, waits_without_end_where_patience_is_0) {
  auto jobs = make_jobs(2);
  for (auto& job : jobs) job.patience = 0ms;
  expect_none(play(jobs, [](Processes& processes) { processes.exchange(1, "meet", ""); }));
}

// -- addresses

TEST(Joining, at_a_port_that_is_taken_says_so) {
  Port const port;
  auto job = make_jobs(2)[0];
  close(std::exchange(job.listener, -1));
  job.rendezvous = port.address();
  EXPECT_TRUE(says(error_of_joining(job), Kind::bad_environment,
                   {port.address(), "Address already in use", "choose a port that is free"}));
  close(port.socket);
}

TEST(Joining, at_a_host_that_is_not_known_says_so) {
  for (u32 const process : {0u, 1u}) {
    auto job = make_caller("");
    job.process = process;
    job.rendezvous = "nowhere.invalid:4711";
    EXPECT_TRUE(says(error_of_joining(job), Kind::bad_environment,
                     {"'nowhere.invalid' can't be resolved", "MESHPOST_RENDEZVOUS"}));
  }
}

TEST(Joining, at_an_address_of_another_host_says_so) {
  auto job = make_jobs(2)[0];
  close(std::exchange(job.listener, -1));
  job.rendezvous = "192.0.2.1:4711";  // for documentation: nobody's
  EXPECT_TRUE(says(error_of_joining(job), Kind::bad_environment,
                   {"can't listen there", "the host that process 0 runs on"}));
}

TEST(Joining, with_a_listener_or_a_secret_that_is_none_says_so) {
  auto job = make_jobs(2)[0];
  int const listener = std::exchange(job.listener, open("/dev/null", O_RDONLY));
  EXPECT_TRUE(
      says(error_of_joining(job), Kind::bad_environment, {"MESHPOST_LISTENER", "does not listen"}));
  close(std::exchange(job.listener, listener));
  job.secret = "hush";
  auto const error = error_of_joining(job);
  EXPECT_TRUE(says(error, Kind::bad_environment, {"64 hexadecimal digits"}));
  EXPECT_EQ(std::string(error.what()).find("hush"), std::string::npos);
  close(listener);
}

TEST(Joining, at_something_else_that_listens_there_says_so) {
  auto const impostor = wire::pack({.type = wire::Type::hello}, greeting::challenge({})) +
                        wire::pack({.type = wire::Type::welcome}, std::string(32, 'x'));
  for (auto const& words :
       {std::string("SSH-2.0-OpenSSH_9.6 and more words than a header has\r\n"),
        wire::pack({.type = wire::Type::hello}, "postmesh"),
        wire::pack({.type = wire::Type::hello}, std::string(5000, 'x')), impostor}) {
    Stranger const stranger(words);
    EXPECT_TRUE(says(error_of_joining(make_caller(stranger.address())), Kind::bad_environment,
                     {"what listens at " + stranger.address(), "check MESHPOST_RENDEZVOUS"}));
  }
}

// -- strangers

class Strangers : public testing::TestWithParam<char const*> {};

TEST_P(Strangers, do_not_keep_out_the_real_ones) {
  std::string const what = GetParam();
  auto jobs = make_jobs(4);
  auto first = joining(jobs[0]);
  wire::Header header{.size = 64, .type = wire::Type::hello};
  std::string words;
  if (what == "garbage") words = std::string(1000, '\xfe');
  if (what == "oversized") header.size = wire::most;
  if (what == "endless") header.size = wire::most_before_greeting;
  if (what != "silent" && what != "garbage")
    words = {reinterpret_cast<char const*>(&header), sizeof header};
  if (what == "truncated") words.resize(sizeof header / 2);
  if (what == "unproven") words += std::string(64, 'x');
  if (what == "flooding") words += std::string(std::size_t{1} << 16, '\0');
  std::vector<Descriptor> strangers;
  for (u32 i = 0; i < 100; ++i) {
    strangers.push_back(connect_to(jobs[1].rendezvous));
    // process 0 may have hung up by now
    (void)!send(strangers.back().get(), words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  auto second = joining(jobs[1]), third = joining(jobs[2]);
  for (auto& stranger : strangers) {
    if (what == "truncated") stranger = {};
    (void)!send(stranger.get(), "x", 1, MSG_NOSIGNAL);
  }
  auto fourth = joining(jobs[3]);
  expect_none({first.get(), second.get(), third.get(), fourth.get()});
}
INSTANTIATE_TEST_SUITE_P(That, Strangers,
                         testing::Values("silent", "garbage", "truncated", "oversized", "endless",
                                         "unproven", "flooding"),
                         [](auto const& one) { return std::string(one.param); });

}  // namespace
}  // namespace meshpost
