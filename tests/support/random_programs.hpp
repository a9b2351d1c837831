#pragma once
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>

#include "support/oracle.hpp"

// Random programs on a World, compared with a sequential oracle. A batch of runs is launched
// without waiting in between. MESHPOST_TEST_SEED repeats one batch. MESHPOST_TEST_OPERATIONS is the
// number of operations of a test, of all ranks together.

namespace meshpost::test {

inline u64 number(char const* variable, u64 otherwise) {
  char const* const text = std::getenv(variable);
  return text ? std::stoull(text) : otherwise;
}
inline u64 operations() { return number("MESHPOST_TEST_OPERATIONS", sanitized ? 2000 : 5000); }
/// Number of queued runs. Under a sanitizer an empty run takes milliseconds.
inline constexpr u32 deep = sanitized ? 20 : 100;
inline u64 any_seed() {
  return mixed(static_cast<u64>(std::chrono::steady_clock::now().time_since_epoch().count()));
}

/// Ignores the warnings of unconsumed notifications: the programs leave some on purpose.
class UnconsumedIsMeant {
 public:
  UnconsumedIsMeant() {
    sink_->next = event_sink();
    set_event_sink(sink_);
  }
  ~UnconsumedIsMeant() { set_event_sink(sink_->next); }
  UnconsumedIsMeant(UnconsumedIsMeant const&) = delete;
  UnconsumedIsMeant& operator=(UnconsumedIsMeant const&) = delete;

 private:
  struct Sink : EventSink {
    void warning(std::string_view text) override {
      if (text.find("nobody consumed") == text.npos) next->warning(text);
    }
    void log(unsigned rank, std::string_view text) override { next->log(rank, text); }
    std::shared_ptr<EventSink> next;
  };
  std::shared_ptr<Sink> sink_ = std::make_shared<Sink>();
};

/// Size of a batch: one run, in which everything is consumed; or up to so many runs. Each of these
/// finds the bytes of earlier runs, and may leave notifications.
struct Batch {
  u32 steps;     ///< of all ranks together, in all its runs, about
  u32 runs = 1;  ///< at most
};

/// Batches on one World, one after the other. Each finds the memory as earlier ones left it.
class Programs {
 public:
  Programs(World& world, Dim3 threads, Batch batch)
      : world_(world), threads_(threads), batch_(batch), oracle_(world.size()) {
    u32 const ranks = world.size();
    kernel_.region = region_of(ranks);
    for (u32 w = 0; w < windows; ++w)
      kernel_.inbox[w] =
          world.window<u8>(u64{ranks} * kernel_.region, Tags{ranks + first_tags}, window_names[w]);
    kernel_.words = world.window<u64>(ranks, Tags{0}, "words");
    kernel_.staging = world.window<u8>(Interpreter::slots * kernel_.slot(), Tags{0}, "out");
    kernel_.programs = world.window<Command>(room_, Tags{0}, "programs");
    kernel_.findings = make_findings(world);
  }

  /// Returns the number of operations. All processes of a job give the same seed.
  u64 run(u64 seed) {
    std::mt19937_64 random(seed);
    auto const drawn = draw(random);
    u64 const operations = load(drawn);
    std::vector<Run> runs;
    runs.reserve(drawn.size());
    kernel_.first = 0;
    for (auto const& one : drawn) {
      kernel_.length = length_of(one);
      kernel_.first_tag = one.first_tag;
      runs.push_back(world_.launch(kernel_, {.threads = threads_}));
      kernel_.first += kernel_.length;
    }
    if (random() % 2 == 0) runs.back().wait();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      auto const there = in_words(runs[i].wait().unconsumed);
      auto const expected = in_words(drawn[i].unconsumed);
      if (there != expected)
        note("run " + std::to_string(i) + " left [" + there + "], not [" + expected + "]");
    }
    compare();
    if (!wrong_.empty())
      wrong_ += "MESHPOST_TEST_SEED=" + std::to_string(seed) + ", a batch of " +
                std::to_string(runs.size()) + " runs";
    runs_ += runs.size();
    return operations;
  }

  u64 runs() const { return runs_; }
  /// Differences from the oracle; empty: none.
  std::string const& wrong() const { return wrong_; }

 private:
  using Drawn = std::vector<RunPrograms>;

  static u32 length_of(RunPrograms const& run) {
    std::size_t length = 0;
    for (auto const& program : run.of) length = std::max(length, program.size());
    return static_cast<u32>(length);
  }

  Drawn draw(std::mt19937_64& random) {
    if (batch_.runs == 1) return {oracle_.draw(random, batch_.steps, Oracle::Leaves::nothing)};
    u64 const runs = random() % 4 == 0 ? 1 + random() % batch_.runs : batch_.runs;
    Drawn drawn;
    for (u64 i = 0; i < runs; ++i) {
      bool const empty = random() % 8 == 0;
      u64 const steps = random() % (2 * batch_.steps / runs + 1);
      drawn.push_back(
          oracle_.draw(random, static_cast<u32>(empty ? 0 : steps),
                       random() % 2 == 0 ? Oracle::Leaves::some : Oracle::Leaves::nothing));
    }
    return drawn;
  }

  // Writes the programs of this process's ranks. Returns the number of operations of all ranks.
  u64 load(Drawn const& drawn) {
    u64 length = 0, operations = 0;
    for (auto const& run : drawn) {
      length += length_of(run);
      for (auto const& program : run.of) operations += program.size();
    }
    if (length > room_) {
      world_.free(kernel_.programs);
      kernel_.programs = world_.window<Command>(room_ = 2 * length, Tags{0}, "programs");
    }
    for (u32 const r : own_ranks()) {
      std::vector<Command> all;
      for (auto const& run : drawn) {
        std::size_t const end = all.size() + length_of(run);
        all.insert(all.end(), run.of[r].begin(), run.of[r].end());
        all.resize(end);
      }
      kernel_.programs.write(RankId{r}, 0, all);
    }
    return operations;
  }

  static std::string in_words(std::vector<Unconsumed> left) {
    std::ranges::sort(left, {}, [](Unconsumed const& one) {
      return std::tuple(one.window, one.rank.value, one.tag.value);
    });
    std::string text;
    for (auto const& one : left)
      text += std::to_string(one.count) + " from " + std::to_string(one.sender.value) + " at " +
              std::to_string(one.rank.value) + " tag " + std::to_string(one.tag.value) + " in " +
              one.window + "; ";
    return text;
  }

  void compare() {
    if (auto const count = total(world_, kernel_.findings))
      note(std::to_string(count) + " times a rank read other bytes");
    for (u32 const r : own_ranks()) {
      for (u32 w = 0; w < windows; ++w)
        if (kernel_.inbox[w].read(RankId{r}) != oracle_.bytes(w, r))
          note("other bytes are at rank " + std::to_string(r) + " in the end");
      if (kernel_.words.read(RankId{r}) != oracle_.words(r))
        note("other words are at rank " + std::to_string(r) + " in the end");
    }
  }

  std::vector<u32> own_ranks() const {
    std::vector<u32> ranks(world_.devices().size() * world_.ranks_per_device());
    for (u32 i = 0; i < ranks.size(); ++i) ranks[i] = world_.first_rank() + i;
    return ranks;
  }
  void note(std::string const& text) {
    if (wrong_.size() < 2000) wrong_ += text + "\n";
  }

  World& world_;
  Dim3 threads_;
  Batch batch_;
  Oracle oracle_;
  Interpreter kernel_{};
  u64 room_ = 1000;  // for commands of a rank
  u64 runs_ = 0;
  std::string wrong_;
  UnconsumedIsMeant quiet_;
};

/// At least so many operations, in batches of at most `runs` runs, whose first seed is `seed`.
/// Returns the differences; empty: none.
inline std::string compare_with_oracle(World& world, Dim3 threads, u64 seed, u64 operations,
                                       u32 runs) {
  // A deep queue needs steps for each of its runs, a long test needs long programs.
  u64 const fewest = runs == 1 ? 200 : 2000;
  u32 const steps = static_cast<u32>(std::clamp<u64>(operations / 25, fewest, 50'000));
  Programs programs(world, threads, {steps, runs});
  u64 done = 0;
  if (u64 const given = number("MESHPOST_TEST_SEED", 0)) done = programs.run(given);
  else
    while (done < operations && programs.wrong().empty()) done += programs.run(seed++);
  if (world.process() == 0) std::printf("%llu operations in %llu runs\n", done, programs.runs());
  return programs.wrong();
}

}  // namespace meshpost::test
