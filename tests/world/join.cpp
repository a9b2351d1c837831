// Which processes get into a job, and the errors of the others.
#include "world/join.hpp"

#include <fcntl.h>

#include <future>

#include "support/sanitized.hpp"
#include "world/players.hpp"

namespace meshpost {
namespace {

using namespace test;

// Of process 0, in tests where others don't come.
constexpr std::chrono::seconds gives_up(sanitized ? 4 : 1);

// -- numbers, secrets, versions

TEST(Joining, without_the_secret_is_refused_whatever_else_it_says_and_the_others_get_in) {
  auto jobs = make_jobs(3);
  auto first = joining(jobs[0]), second = joining(jobs[1]);
  for (u32 const process : {0u, 1u, 2u, 5u})
    for (u32 const processes : {3u, 4u}) {
      auto wrong = jobs[2];
      wrong.secret = Secret(random_bytes()).hex();
      wrong.process = process == 0 ? 9 : process;
      wrong.processes = processes;
      EXPECT_TRUE(
          says(error_of_joining(wrong), Kind::bad_environment, {"secret", "MESHPOST_SECRET"}));
    }
  auto third = joining(jobs[2]);
  expect_none({first.get(), second.get(), third.get()});
}

TEST(Joining, without_the_secret_is_named_by_process_0_when_it_gives_up) {
  auto jobs = make_jobs(2);
  jobs[0].timeout = gives_up;
  auto first = joining(jobs[0]);
  jobs[1].secret = Secret(random_bytes()).hex();
  error_of_joining(jobs[1]);
  error_of_joining(jobs[1]);
  auto const told = first.get();
  ASSERT_TRUE(told);
  EXPECT_TRUE(
      says(*told, Kind::deadline,
           {"missing: process 1; refused 6 calls with another secret, the last of a caller from "
            "127.0.0.1 (port ",
            "the same MESHPOST_SECRET", "MESHPOST_START_DEADLINE"}));
}

// Two jobs of one script, with one address and one secret.
TEST(Joining, with_the_secret_and_of_another_job_is_refused_by_name_and_the_others_get_in) {
  auto jobs = make_jobs(2);
  for (auto& job : jobs) job.identity = "12-0";
  auto first = joining(jobs[0]);
  auto other = jobs[1];
  other.identity = "12-1";
  EXPECT_TRUE(says(error_of_joining(other), Kind::bad_environment,
                   {"another job meets there: '12-0'", "of '12-1'", "MESHPOST_RENDEZVOUS"}));
  auto second = joining(jobs[1]);
  expect_none({first.get(), second.get()});
}

TEST(Joining, of_another_job_is_named_by_process_0_when_it_gives_up) {
  auto jobs = make_jobs(2);
  jobs[0].identity = "12-0", jobs[1].identity = "13-0";
  jobs[0].timeout = gives_up;
  auto first = joining(jobs[0]);
  error_of_joining(jobs[1]);
  auto const told = first.get();
  ASSERT_TRUE(told);
  EXPECT_TRUE(says(*told, Kind::deadline,
                   {"missing: process 1", "another job, '13-0', as this is '12-0'"}));
}

TEST(Joining, waits_without_a_limit_where_its_deadline_is_0) {
  auto jobs = make_jobs(2);
  for (auto& job : jobs) job.timeout = 0ms;
  auto first = joining(jobs[0]);
  EXPECT_EQ(first.wait_for(300ms), std::future_status::timeout);
  auto second = joining(jobs[1]);
  for (auto* const one : {&first, &second}) {
    auto const error = one->get();
    EXPECT_FALSE(error) << error->what();
  }
}

// All that are in, the wrong one, and the one that comes after it.
void expect_all_told(std::vector<Job> jobs, Job wrong, Kind kind,
                     std::initializer_list<std::string_view> parts) {
  for (auto& job : jobs) job.timeout = std::chrono::hours(1);
  wrong.timeout = jobs[0].timeout;
  auto first = joining(jobs[0]);
  auto second = join::enter(jobs[1]);
  std::vector<Error> told{error_of_joining(wrong), error_of_joining(jobs[2])};
  auto const refusal = await(*second, wire::Type::refusal);
  second.reset();  // process 0 would wait for it
  ASSERT_TRUE(refusal);
  told.push_back(wire::unpack_error(refusal->bytes));
  auto const of_first = first.get();
  ASSERT_TRUE(of_first);
  told.push_back(*of_first);
  for (auto const& error : told) EXPECT_TRUE(says(error, kind, parts));
}

TEST(Joining, with_the_secret_and_another_count_ends_the_job_at_once_everywhere) {
  auto const jobs = make_jobs(4);
  auto wrong = jobs[3];
  wrong.processes = 5;
  expect_all_told(jobs, wrong, Kind::bad_environment,
                  {"process 3 believes that it is one of 5, process 0 counts 4"});
}

TEST(Joining, with_the_secret_and_a_number_that_is_none_ends_the_job_at_once_everywhere) {
  auto const jobs = make_jobs(4);
  auto wrong = jobs[3];
  wrong.process = 7;
  expect_all_told(jobs, wrong, Kind::bad_environment, {"process 7", "counts 4"});
}

TEST(Joining, with_the_secret_and_a_number_that_is_taken_ends_the_job_at_once_everywhere) {
  auto const jobs = make_jobs(4);
  auto const self = "process " + std::to_string(getpid()) + " of " + join::host_name();
  expect_all_told(jobs, jobs[1], Kind::bad_environment,
                  {"number 1 is taken by " + self + "; " + self + " says that it is 1, too",
                   "MESHPOST_PROCESS"});
}

TEST(Joining, with_another_version_ends_the_job_whatever_else_it_says) {
  for (bool const foreign : {false, true}) {
    auto jobs = make_jobs(2);
    for (auto& job : jobs) job.timeout = std::chrono::hours(1);
    auto first = joining(jobs[0]);
    auto bytes = greeting::pack({1, 2, greeting::version() + 1, 1, "elsewhere", ""});
    if (foreign)  // another layout, but with the same beginning
      bytes = wire::Packer().value(u32{1}).value(u32{2}).value(u32{77}).take();
    auto const line = knock(jobs[1]);
    send_now(*line, {.type = wire::Type::hello}, bytes);
    auto const refusal = await(*line, wire::Type::refusal);
    ASSERT_TRUE(refusal);
    EXPECT_TRUE(says(wire::unpack_error(refusal->bytes), Kind::version_mismatch,
                     {"process 1", foreign ? "0x4d" : "", "one version of the library"}));
    auto const told = first.get();
    ASSERT_TRUE(told);
    EXPECT_TRUE(says(*told, Kind::version_mismatch, {"process 1"}));
  }
}

// -- processes that do not come

TEST(Joining, names_the_missing_in_all_that_have_come) {
  auto jobs = make_jobs(4);
  jobs[0].timeout = gives_up;
  auto third = joining(jobs[2]);
  pollfd calls{jobs[0].listener, POLLIN, 0};
  EXPECT_EQ(poll(&calls, 1, 30'000), 1);  // it calls before the time of process 0 begins
  EXPECT_TRUE(says(error_of_joining(jobs[0]), Kind::deadline,
                   {"2 of 4 processes came within " + std::to_string(gives_up.count()) +
                    " s; missing: process 1, process 3"}));
  auto const told = third.get();
  ASSERT_TRUE(told);
  EXPECT_TRUE(says(*told, Kind::deadline, {"missing: process 1, process 3"}));
}

TEST(Joining, ends_at_once_when_one_that_had_come_is_lost) {
  auto jobs = make_jobs(4);
  for (auto& job : jobs) job.timeout = std::chrono::hours(1);
  auto first = joining(jobs[0]);
  auto second = join::enter(jobs[1]);
  join::enter(jobs[2]).reset();
  auto const lost = await(*second, wire::Type::lost);
  EXPECT_TRUE(lost && lost->header.process == 2);
  EXPECT_TRUE(await(*second, wire::Type::refusal));
  second.reset();  // process 0 would wait for it
  // This process comes late, and is told so.
  EXPECT_TRUE(says(error_of_joining(jobs[3]), Kind::peer_lost, {"join the job", "process 2"}));
  auto const told = first.get();
  ASSERT_TRUE(told);
  EXPECT_TRUE(says(*told, Kind::peer_lost, {"join the job", "process 2"}));
}

TEST(Joining, gives_up_where_nobody_listens_and_says_where) {
  Port const port(false);
  auto job = make_caller(port.address());
  job.timeout = 100ms;
  EXPECT_TRUE(says(error_of_joining(job), Kind::deadline,
                   {port.address(), "process 0 was not there within 0.1 s", "refused"}));
  close(port.socket);
}

TEST(Joining, waits_without_end_where_timeout_is_0) {
  auto jobs = make_jobs(2);
  for (auto& job : jobs) job.timeout = 0ms;
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
  job.rendezvous = "192.0.2.1:4711";  // an address for documentation: nobody has it
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
  auto const earlier_version =
      wire::pack({.type = wire::Type::hello}, "meshpost" + std::string(32, 'x'));
  for (auto const& words : {std::string("SSH-2.0-OpenSSH_9.6 and more words than a record has\r\n"),
                            std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), earlier_version,
                            first_words(Secret(random_bytes())), std::string(5000, 'x')}) {
    UnauthenticatedPeer const peer(words);
    EXPECT_TRUE(says(error_of_joining(make_caller(peer.address())), Kind::bad_environment,
                     {"what listens at " + peer.address(), "check MESHPOST_RENDEZVOUS"}));
  }
}

// It says nothing. Or it begins to greet, like a process that is then stopped.
TEST(Joining, at_something_that_listens_and_does_not_greet_says_so) {
  for (auto const& words : {std::string(), std::string("\x16\x03\x03\x00\x7a\x02", 6)}) {
    UnauthenticatedPeer const silent(words);
    auto job = make_caller(silent.address());
    job.timeout = 300ms;
    EXPECT_TRUE(says(error_of_joining(job), Kind::deadline,
                     {"what listens at " + silent.address() + " has not greeted within 0.3 s",
                      "another program has this port", "MESHPOST_RENDEZVOUS"}));
  }
}

TEST(Joining, at_something_that_knows_another_secret_says_so) {
  UnauthenticatedPeer const peer(denial);
  EXPECT_TRUE(says(error_of_joining(make_caller(peer.address())), Kind::bad_environment,
                   {"the secret is another one than process 0's", "MESHPOST_SECRET"}));
}

TEST(Joining, at_something_that_hangs_up_ends_at_the_deadline_and_says_so) {
  Port const port;
  std::thread rude([&] {
    while (Descriptor const call{accept4(port.socket, nullptr, nullptr, SOCK_CLOEXEC)})
      shutdown(call.get(), SHUT_RDWR);
  });
  auto job = make_caller(port.address());
  job.timeout = 300ms;
  EXPECT_TRUE(says(error_of_joining(job), Kind::deadline,
                   {"what listens at " + port.address() + " has not greeted within 0.3 s",
                    "another program has this port"}));
  shutdown(port.socket, SHUT_RDWR);
  rude.join();
  close(port.socket);
}

}  // namespace
}  // namespace meshpost
