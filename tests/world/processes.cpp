// Processes of a job that work together over sockets, leave, and are lost.
#include "world/processes.hpp"

#include <atomic>
#include <future>

#include "support/sink.hpp"
#include "world/players.hpp"

namespace meshpost {
namespace {

using namespace test;

std::string part(u32 process, u32 channel, u32 round) {
  return std::to_string(process) + " on " + std::to_string(channel) + " in " +
         std::to_string(round) + std::string((process * 7 + round) % 5 * 1000, 'x');
}

void exchange_rounds(Processes& processes, u32 channel, u32 rounds) {
  for (u32 round = 0; round < rounds; ++round) {
    auto const parts =
        processes.exchange(channel, "compare", part(processes.number(), channel, round));
    ASSERT_EQ(parts.size(), processes.count());
    for (u32 process = 0; process < processes.count(); ++process)
      ASSERT_EQ(parts[process], part(process, channel, round));
  }
}

class Jobs : public testing::TestWithParam<u32> {};

TEST_P(Jobs, join_and_exchange_by_process) {
  expect_none(play(make_jobs(GetParam()), [](Processes& processes) {
    EXPECT_EQ(processes.count(), GetParam());
    EXPECT_NE(processes.name(processes.number()).find("pid " + std::to_string(getpid())),
              std::string::npos);
    EXPECT_FALSE(processes.lost());
    exchange_rounds(processes, 5, 20);
  }));
}
INSTANTIATE_TEST_SUITE_P(Of, Jobs, testing::Range(1u, 9u));

TEST(Processes, exchange_on_several_channels_from_several_threads) {
  expect_none(play(make_jobs(4), [](Processes& processes) {
    std::vector<std::thread> threads;
    for (u32 channel = 1; channel <= 4; ++channel)
      threads.emplace_back([&, channel] { exchange_rounds(processes, channel, 100); });
    for (auto& thread : threads) thread.join();
  }));
}

#if defined(__SANITIZE_THREAD__)
constexpr std::size_t large = std::size_t{4} << 20;  // 20 MiB take it half a minute
#else
constexpr std::size_t large = std::size_t{20} << 20;
#endif

// They leave at once: what is on its way must still arrive.
TEST(Processes, exchange_large_parts) {
  expect_none(play(make_jobs(3), [](Processes& processes) {
    auto const mine = [](u32 process) {
      return std::string(large + process, static_cast<char>('a' + process));
    };
    auto const parts = processes.exchange(1, "load", mine(processes.number()));
    for (u32 process = 0; process < 3; ++process) EXPECT_EQ(parts[process], mine(process));
  }));
}

// Who closes while something is unread takes back what it has sent: so process 0 must read on.
TEST(Processes, that_leave_wait_for_one_that_reads_slowly_and_talks) {
  auto jobs = make_jobs(2);
  std::string const part(100'000, 'x');
  auto slow = std::async(std::launch::async, [&] { return join_by_hand(jobs[1]); });
  std::thread reading;
  expect_none(play({jobs[0]}, [&](Processes& processes) {
    reading = std::thread([&part, line = slow.get()] {
      int const least = 4096;
      setsockopt(line->socket(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
      send_now(*line, {.type = wire::Type::bring, .channel = 1, .sequence = 1},
               wire::Packer().text("load").text("").value(Waiters::impatient).value(u32{0}).take());
      bool left = false, whole = false, stands = true;
      while (!left && stands) {
        send_now(*line, {.type = wire::Type::beat});
        pollfd polled{line->socket(), POLLIN, 0};
        poll(&polled, 1, 30'000);
        stands = line->receive();  // a few kB: no more can wait
        while (auto const frame = line->next()) {
          whole |=
              frame->header.type == wire::Type::all && frame->bytes.find(part) != std::string::npos;
          left = frame->header.type == wire::Type::leave;
        }
      }
      EXPECT_TRUE(whole);
      EXPECT_TRUE(left);
    });
    processes.exchange(1, "load", part);
  }));
  reading.join();
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST(Processes, refuse_a_part_that_is_too_large_and_go_on) {
  expect_none(play(make_jobs(2), [](Processes& processes) {
    if (processes.number() == 1) {
      EXPECT_TRUE(
          says(error_of([&] { processes.exchange(1, "load", std::string(wire::most, 'x')); }),
               Kind::bad_argument, {"load", "268435456 bytes"}));
    }
    exchange_rounds(processes, 1, 3);
  }));
}
#endif

TEST(Processes, that_do_different_things_are_all_told_and_can_go_on) {
  expect_none(play(make_jobs(3), [](Processes& processes) {
    auto const operation = processes.number() == 2 ? "make window b" : "make window a";
    EXPECT_TRUE(
        says(error_of([&] { processes.exchange(3, operation, "x"); }), Kind::misuse,
             {operation, "process 2 does 'make window b' where process 0 does 'make window a'"}));
    exchange_rounds(processes, 3, 3);
  }));
}

TEST(Processes, post_in_order_to_one_and_to_everyone) {
  constexpr u32 count = 4, posts = 200;
  expect_none(play(make_jobs(count), [](Processes& processes) {
    u32 const me = processes.number();
    for (u32 i = 0; i < posts; ++i) {
      if (i % 2 == 0) processes.post(9, Processes::everyone, std::to_string(i));
      else
        for (u32 to = 0; to < count; ++to)
          if (to != me) processes.post(9, to, std::to_string(i));
      processes.post(10, (me + 1) % count, "for the next");
    }
    std::vector<std::vector<std::string>> came(count);
    EXPECT_TRUE(comes_true([&] {
      u32 whole = 0;
      for (auto& post : processes.take_posts(9)) came.at(post.from).push_back(post.bytes);
      for (auto const& one : came) whole += one.size() == posts;
      return whole == count - 1;
    }));
    for (u32 from = 0; from < count; ++from)
      for (u32 i = 0; i < came[from].size(); ++i) ASSERT_EQ(came[from][i], std::to_string(i));
    EXPECT_TRUE(came[me].empty());
    u32 next = 0;
    EXPECT_TRUE(comes_true([&] {
      for (auto const& post : processes.take_posts(10)) {
        EXPECT_EQ(post.from, (me + count - 1) % count);
        ++next;
      }
      return next == posts;
    }));
    processes.exchange(1, "end", "");  // or who leaves early takes what others wait for
  }));
}

// -- those who go

TEST(Processes, name_one_that_has_left_in_an_exchange_and_do_not_count_it_as_lost) {
  for (u32 const leaver : {0u, 2u})
    expect_none(play(make_jobs(3), [&](Processes& processes) {
      exchange_rounds(processes, 1, 2);
      if (processes.number() == leaver) return;
      auto const error = error_of([&] { processes.exchange(1, "meet again", ""); });
      // not the one that ended because of it
      EXPECT_TRUE(says(error, Kind::peer_lost,
                       {"meet again: process " + std::to_string(leaver), "gone: it has ended"}));
      EXPECT_FALSE(processes.lost());
    }));
}

// The others wait in an exchange while `lose` makes process `lost` of four vanish.
void expect_named(std::vector<Job> const& jobs, std::string const& lost,
                  std::function<void()> const& lose) {
  std::atomic<u32> joined = 0;
  std::thread crash([&] {
    EXPECT_TRUE(comes_true([&] { return joined == 3; }));
    lose();
  });
  expect_none(play(jobs, [&](Processes& processes) {
    ++joined;
    EXPECT_TRUE(says(error_of([&] { processes.exchange(1, "meet again", ""); }), Kind::peer_lost,
                     {"meet again", lost, "without a farewell"}));
    ASSERT_TRUE(processes.lost());
    EXPECT_TRUE(says(processes.lost_error("wait", *processes.lost()), Kind::peer_lost, {lost}));
    EXPECT_TRUE(says(error_of([&] { processes.exchange(2, "once more", ""); }), Kind::peer_lost,
                     {"once more", lost}));
    EXPECT_EQ(processes.post(1, Processes::everyone, "into the void"), !processes.gone(0));
  }));
  crash.join();
}

TEST(Processes, name_one_that_is_lost) {
  auto jobs = make_jobs(4);
  auto const one = jobs[2];
  jobs.erase(jobs.begin() + 2);
  auto crashing = std::async(std::launch::async, [&] { return join_by_hand(one); });
  expect_named(jobs, "process 2 (made by hand)", [&] { crashing.get().reset(); });
}

TEST(Processes, know_of_each_that_is_gone_and_which_was_lost_first) {
  auto jobs = make_jobs(5);
  std::vector<std::future<std::unique_ptr<Line>>> crashing;
  for (u32 process = 3; process < 5; ++process)
    crashing.push_back(
        std::async(std::launch::async, [job = jobs[process]] { return join_by_hand(job); }));
  jobs.resize(3);
  std::atomic<u32> found = 0;
  expect_none(play(jobs, [&](Processes& processes) {
    EXPECT_FALSE(processes.gone(1));
    EXPECT_TRUE(processes.all_gone().empty());
    if (processes.number() == 2) return;  // leaves
    auto const finds = [&](u32 process) {
      EXPECT_TRUE(comes_true([&] { return processes.gone(process).has_value(); }));
      auto const loss = processes.gone(process).value_or(Loss{});
      EXPECT_EQ(loss.process, process);
      EXPECT_EQ(loss.left, process == 2);
      ++found;
    };
    finds(2);
    EXPECT_FALSE(processes.lost());
    for (u32 i = 0; i < 2; ++i) {
      if (processes.number() == 0) {
        EXPECT_TRUE(comes_true([&] { return found == 2 + 2 * i; }));
        crashing[1 - i].get().reset();
      }
      finds(4 - i);
      ASSERT_TRUE(processes.lost());
      EXPECT_EQ(processes.lost()->process, 4u);
    }
    EXPECT_EQ(processes.all_gone().size(), 3u);
    EXPECT_FALSE(processes.gone(0) || processes.gone(1));
    EXPECT_TRUE(comes_true([&] { return found == 6; }));
  }));
}

TEST(Processes, name_one_that_sends_garbage) {
  auto jobs = make_jobs(2);
  auto crashing = std::async(std::launch::async, [&] { return join_by_hand(jobs[1]); });
  expect_none(play({jobs[0]}, [&](Processes& processes) {
    auto const line = crashing.get();
    std::string const garbage(4096, '\xee');
    EXPECT_GT(send(line->socket(), garbage.data(), garbage.size(), MSG_NOSIGNAL), 0);
    EXPECT_TRUE(says(error_of([&] { processes.exchange(1, "meet again", ""); }), Kind::peer_lost,
                     {"process 1", "it sent garbage: a message was changed on its way"}));
  }));
}

TEST(Processes, name_process_0_when_it_is_lost) {
  auto jobs = make_jobs(4);
  auto const hub = jobs[0];
  jobs.erase(jobs.begin());
  // By hand too: it lets the others in, gives them their names and closes.
  std::vector<std::unique_ptr<Line>> lines;
  std::thread played([&] {
    join::admit_all(
        hub, {.welcome = [&](u32, std::unique_ptr<Line> line) { lines.push_back(std::move(line)); },
              .check = [] {},
              .dismiss = [](Error const&) {}});
    wire::Packer names;
    for (u32 i = 0; i < 4; ++i) names.text("name " + std::to_string(i));
    auto const packed = names.take();
    for (auto const& line : lines) {
      EXPECT_TRUE(await(*line, wire::Type::bring));
      send_now(*line, {.type = wire::Type::all, .channel = 0, .sequence = 1}, packed);
    }
  });
  expect_named(jobs, "process 0 (name 0)", [&] {
    played.join();
    lines.clear();
  });
}

// -- silence

TEST(Processes, lose_one_that_is_silent_and_not_before_and_tell_it) {
  auto jobs = make_jobs(2);
  jobs[0].silence = 600ms;
  Clock::time_point last_words;
  auto silent = std::async(std::launch::async, [&] {
    auto line = join::enter(jobs[1]);
    last_words = Clock::now();
    send_now(*line, {.type = wire::Type::bring, .channel = 0, .sequence = 1},
             wire::Packer()
                 .text("join the job")
                 .text("mute")
                 .value(Waiters::impatient)
                 .value(u32{0})
                 .take());
    EXPECT_TRUE(await(*line, wire::Type::all));
    auto const lost = await(*line, wire::Type::lost);
    EXPECT_TRUE(lost && lost->header.process == 1);
  });
  expect_none(play({jobs[0]}, [&](Processes& processes) {
    EXPECT_TRUE(says(error_of([&] { processes.exchange(1, "meet again", ""); }), Kind::peer_lost,
                     {"process 1 (mute)", "no sign of life for 0.6 s"}));
    auto const now = Clock::now();
    silent.get();
    EXPECT_GE(now - last_words, 600ms);
  }));
}

// A message whose size was changed on its way, say: what comes is taken for the rest of it.
TEST(Processes, lose_one_whose_bytes_never_make_a_message) {
  auto jobs = make_jobs(2);
  jobs[0].silence = 600ms;
  auto joined = std::async(std::launch::async, [&] { return join_by_hand(jobs[1]); });
  expect_none(play({jobs[0]}, [&](Processes& processes) {
    auto const line = joined.get();
    std::string const begun("\x17\x03\x03\x40\x00", 5);
    EXPECT_EQ(send(line->socket(), begun.data(), begun.size(), MSG_NOSIGNAL), 5);
    EXPECT_TRUE(comes_true([&] {
      (void)!send(line->socket(), "x", 1, MSG_NOSIGNAL);
      return processes.lost().has_value();
    }));
    EXPECT_TRUE(says(error_of([&] { processes.exchange(1, "meet again", ""); }), Kind::peer_lost,
                     {"process 1 (made by hand)", "no sign of life for 0.6 s"}));
  }));
}

TEST(Processes, lose_process_0_when_it_is_silent) {
  auto jobs = make_jobs(2);
  jobs[1].silence = 600ms;
  std::vector<std::unique_ptr<Line>> lines;
  std::thread silent([&] {
    join::admit_all(
        jobs[0],
        {.welcome = [&](u32, std::unique_ptr<Line> line) { lines.push_back(std::move(line)); },
         .check = [] {},
         .dismiss = [](Error const&) {}});
  });
  EXPECT_TRUE(says(error_of([&] { Processes const processes(jobs[1]); }), Kind::peer_lost,
                   {"join the job", "process 0", "no sign of life for 0.6 s"}));
  silent.join();
}

TEST(Processes, that_have_nothing_to_say_are_not_lost) {
  auto jobs = make_jobs(3);
  for (auto& job : jobs) job.silence = 1s;
  expect_none(play(jobs, [](Processes& processes) {
    for (auto const until = Clock::now() + 2500ms; Clock::now() < until;
         std::this_thread::sleep_for(20ms))
      ASSERT_FALSE(processes.lost());
    exchange_rounds(processes, 1, 1);
  }));
}

TEST(Processes, warn_once_of_an_exchange_that_waits_for_one) {
  Listener const listener;
  auto jobs = make_jobs(3);
  for (auto& job : jobs) job.silence = 1s;
  expect_none(play(jobs, [&](Processes& processes) {
    if (processes.number() == 1) {
      EXPECT_TRUE(comes_true([&] { return !listener.warnings().empty(); }));
    }
    processes.exchange(1, "make a window", "");
  }));
  ASSERT_EQ(listener.warnings().size(), 1u);
  EXPECT_EQ(listener.warnings().front(),
            "make a window has waited 1 s for process 1: all processes must call it");
}

TEST(Processes, warn_of_no_exchange_whose_waiters_are_patient) {
  Listener const listener;
  auto jobs = make_jobs(3);
  for (auto& job : jobs) job.silence = 1s;
  expect_none(play(jobs, [&](Processes& processes) {
    bool const late = processes.number() == 1;  // until the others' other exchange is warned of
    std::jthread const meeting([&] {
      if (late) comes_true([&] { return !listener.warnings().empty(); });
      processes.exchange(2, "meet", "", Waiters::patient);
    });
    if (late) comes_true([&] { return !listener.warnings().empty(); });
    processes.exchange(1, "make a window", "");
  }));
  ASSERT_EQ(listener.warnings().size(), 1u);
  EXPECT_EQ(listener.warnings().front(),
            "make a window has waited 1 s for process 1: all processes must call it");
}

}  // namespace
}  // namespace meshpost
