// Random accesses to arrays against an oracle.
#include <deque>
#include <random>

#include "array/recorded_context.hpp"
#include "base/host_hooks.hpp"
#include "copy/places.hpp"

namespace meshpost {
namespace {

using test::recorded;
using test::RecordedContext;

// One array and the values that it must have. Contents of recorded places are overwritten as soon
// as they are invalid.
class Program {
 public:
  explicit Program(u64 seed) : random_(seed) {
    places_ = {At().context(), At(Place{"pinned", 0}).context()};
    for (auto const& device : test::copy_devices()) places_.push_back(At(device).context());
    for (auto const* const name : {"a", "b", "c"}) {
      recorded_.push_back(recorded(name));
      places_.push_back(recorded_.back());
    }
  }
  ~Program() { hooks::install_host_hook(nullptr); }

  void step() {
    fails_ = draw(8) == 0;
    if (fails_)
      hooks::install_host_hook([](std::string_view place) {
        if (place == "copy an array" || place == "allocate memory of an array")
          throw Error(Kind::device_failed, "copy", "planted", "");
      });
    auto const p = draw(places_.size());
    switch (draw(12)) {
      case 0:
      case 1:
      case 2: read(p); break;
      case 3:
      case 4: write(p, true); break;
      case 5: write(p, false); break;
      case 6: attempt([&] { array_.prefetch(places_[p]); }); break;
      case 7: attempt([&] { array_.drop(places_[p]); }); break;
      case 8: resize(); break;
      default: release(); break;
    }
    hooks::install_host_hook(nullptr);
  }
  void check_all() {
    while (!live_.empty()) release();
    if (written_)
      for (auto const& place : places_) {
        auto const access = array_.read(place);
        expect_contents(access.data());
      }
  }
  u64 done() const { return done_; }

 private:
  struct Live {
    std::size_t place;
    bool writes;
    std::optional<ReadAccess<int>> reader;
    std::optional<WriteAccess<int>> writer;
    int const* data() const { return writer ? writer->data() : reader->data(); }
  };

  u64 draw(u64 limit) { return random_() % limit; }

  template <class Work>
  bool attempt(Work&& work) {
    try {
      work();
      ++done_;
      return true;
    } catch (Error const& error) {
      misuse_ = error.kind() == Kind::misuse;
      refusal_ = error.what();
      EXPECT_TRUE(misuse_ || (fails_ && error.kind() == Kind::device_failed)) << error.what();
      return false;
    }
  }

  // Accesses that must exclude each other do, and no others.
  void judge(bool done, std::size_t place, bool writes, int const* data) {
    for (auto const& one : live_) {
      if (!writes && !one.writes) continue;
      bool const same_memory = data == one.data() && !(writes && one.writes);
      EXPECT_TRUE(!done || same_memory || values_.empty());
    }
    if (done || !misuse_ || !written_) return;
    EXPECT_TRUE(std::ranges::any_of(live_,
                                    [&](Live const& one) {
                                      if (writes && one.writes) return true;
                                      return (writes || one.writes) &&
                                             (one.place != place || live_.size() > 1);
                                    }))
        << refusal_ << '\n'
        << array_.explain();
  }

  void read(std::size_t p) {
    std::optional<ReadAccess<int>> access;
    bool const done = attempt([&] { access.emplace(array_.read(places_[p])); });
    judge(done, p, false, done ? access->data() : nullptr);
    if (!done) return;
    EXPECT_TRUE(written_ || values_.empty());
    expect_contents(access->data());
    if (draw(2)) live_.push_back({p, false, std::move(access), {}});
  }

  void write(std::size_t p, bool keep) {
    std::optional<WriteAccess<int>> access;
    bool const done = attempt(
        [&] { access.emplace(keep ? array_.write(places_[p]) : array_.write_only(places_[p])); });
    judge(done, p, true, done ? access->data() : nullptr);
    if (!done) return;
    for (auto const& place : recorded_) place->poison_all_but(access->data());
    if (keep) expect_contents(access->data());
    auto const changed = keep && !values_.empty() ? draw(values_.size()) : values_.size();
    auto const values = test::random_data(random_, changed * sizeof(int));
    if (changed) std::memcpy(values_.data(), values.data(), values.size());
    copy(access->data(), values_.data(), Bytes{values_.size() * sizeof(int)});
    written_ = true;
    if (draw(2)) live_.push_back({p, true, {}, std::move(access)});
  }

  void resize() {
    auto const size = draw(3) ? 1 + draw(40) : draw(2) * 300'000;
    auto const contents = draw(3) ? Contents::keep : Contents::discard;
    bool const had_live = !live_.empty();
    if (!attempt([&] { array_.resize(size, contents); })) {
      EXPECT_TRUE(had_live || fails_);
      return;
    }
    EXPECT_FALSE(had_live);
    auto const kept = values_.size();
    values_.resize(size);
    if (contents == Contents::discard || kept == 0) written_ = false;
    hooks::install_host_hook(nullptr);  // what follows is this test's
    if (written_ && size > kept) {      // new elements have no values yet
      auto const access = array_.write(places_.front());
      copy(access.data() + kept, values_.data() + kept, Bytes{(size - kept) * sizeof(int)});
      for (auto const& place : recorded_) place->poison_all_but(access.data());
    }
  }

  void release() {
    if (live_.empty()) return;
    auto const at = live_.begin() + static_cast<std::ptrdiff_t>(draw(live_.size()));
    expect_contents(at->data());
    live_.erase(at);
  }

  void expect_contents(int const* data) {
    std::vector<int> there(values_.size());
    copy(there.data(), data, Bytes{there.size() * sizeof(int)});
    EXPECT_TRUE(there == values_);
  }

  std::mt19937_64 random_;
  std::vector<ContextPtr> places_;
  std::vector<std::shared_ptr<RecordedContext const>> recorded_;
  std::vector<int> values_ = std::vector<int>(20);
  Array<int> array_{20, "random"};
  bool written_ = false, fails_ = false, misuse_ = false;
  std::string refusal_;
  std::deque<Live> live_;
  u64 done_ = 0;
};

TEST(ArrayPrograms, random_accesses_find_the_values_last_written) {
  auto const seed = test::new_seed();
  u64 done = 0;
  for (u64 round = 0; round < 20 && !testing::Test::HasFailure(); ++round) {
    Program program(seed + round);
    for (int i = 0; i < 200 && !testing::Test::HasFailure(); ++i) program.step();
    program.check_all();
    done += program.done();
  }
  EXPECT_GT(done, 500u);
}

}  // namespace
}  // namespace meshpost
