// Failures of copies and allocations leave arrays as they were.
#include "array/recorded_context.hpp"
#include "base/host_hooks.hpp"
#include "copy/places.hpp"
#include "meshpost/compat/lama.hpp"

namespace meshpost {
namespace {

using test::copied;
using test::error_of;
using test::recorded;
using test::RecordedContext;
using test::says;

struct Failing {
  explicit Failing(std::string_view at) {
    hooks::install_host_hook([at](auto place) {
      if (place == at) throw Error(Kind::device_failed, "copy", "the test made it fail", "");
    });
  }
  ~Failing() { hooks::install_host_hook(nullptr); }
  Failing(Failing const&) = delete;
};

constexpr std::string_view steps[] = {"allocate memory of an array", "copy an array",
                                      "an array was copied"};

std::vector<int> numbers{3, 1, 4, 1, 5};

std::vector<int> contents(Array<int> const& array, At const& at) {
  auto const access = array.read(at);
  return {access.begin(), access.end()};
}

TEST(ArrayFailures, failed_accesses_leave_the_array_as_it_was) {
  for (auto const step : steps) {
    auto const a = recorded("a"), b = recorded("b");
    Array<int> array(5, "numbers");
    {
      auto const all = array.write_only(a);
      std::copy(numbers.begin(), numbers.end(), all.data());
    }
    for (int mode = 0; mode < 3; ++mode) {
      Failing const failing(step);
      auto const access = [&] {
        if (mode == 0) array.read(b);
        if (mode == 1) array.write(b);
        if (mode == 2) array.resize(100, Contents::keep);
      };
      EXPECT_EQ(error_of(access).kind(), Kind::device_failed) << step << mode;
      EXPECT_TRUE(array.valid_at(a));
      EXPECT_FALSE(array.valid_at(b));
      EXPECT_EQ(array.size(), 5u);
      EXPECT_EQ(copied(array), 0u);
      b->poison_all_but(nullptr);
      EXPECT_EQ(contents(array, a), numbers);
      if (mode < 2 && step == steps[0]) b->poison_all_but(nullptr);
    }
    array.write(b)[0] = 2;  // nothing is live, and the way is free
    EXPECT_EQ(contents(array, a), (std::vector<int>{2, 1, 4, 1, 5}));
  }
}

TEST(ArrayFailures, failed_write_only_keeps_the_old_contents) {
  auto const a = recorded("a"), b = recorded("b");
  Array<int> array(5, "numbers");
  array.write_only(a)[4] = 9;
  {
    Failing const failing(steps[0]);
    EXPECT_EQ(error_of([&] { array.write_only(b); }).kind(), Kind::device_failed);
  }
  EXPECT_EQ(array.read(a)[4], 9);
}

// Copies from and to memory that the library does not reach.
class OwnCopies : public lama::Context {
 public:
  OwnCopies(Place place, std::string name) : Context(std::move(place)), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  bool canUseData(meshpost::Context const&) const override { return false; }
  bool cancpy(meshpost::Context const& target, meshpost::Context const& source) const override {
    return target.place().on_host() && source.place().on_host() && accepts;
  }
  void memcpy(meshpost::Context const&, void* to, meshpost::Context const&, void const* from,
              Bytes size) const override {
    ++copies;
    if (fails) throw Error(Kind::device_failed, "own copy", "the test made it fail", "");
    std::memcpy(to, from, size);
  }
  bool reached_by_copies() const override { return false; }

  mutable int copies = 0;
  bool accepts = true, fails = false;

 private:
  std::string name_;
};

TEST(ArrayFailures, overridden_copies_are_asked_first_at_the_target) {
  auto const one = std::make_shared<OwnCopies>(Place{"pageable", 0}, "one");
  auto const two = std::make_shared<OwnCopies>(Place{"pageable", 0}, "two");
  Array<int> array(numbers, "numbers");
  EXPECT_EQ(contents(array, one), numbers);
  EXPECT_EQ(one->copies, 1);
  array.write(one);
  EXPECT_EQ(contents(array, two), numbers);
  EXPECT_EQ(two->copies, 1);
  array.prefetch(At())->wait();  // by the source's context, since the host's copies nothing
  EXPECT_EQ(contents(array, At()), numbers);
  EXPECT_EQ(one->copies + two->copies, 3);
  array.write(two);
  one->fails = true;
  EXPECT_EQ(error_of([&] { array.read(one); }).kind(), Kind::device_failed);
  EXPECT_TRUE(array.valid_at(two));
  EXPECT_FALSE(array.valid_at(one));
}

TEST(ArrayFailures, bytes_go_through_the_host_if_nobody_copies_between_two_places) {
  auto const one = std::make_shared<OwnCopies>(Place{"pageable", 0}, "one");
  auto const& device = test::copy_devices().front();
  Array<int> array(5, "numbers");
  {
    auto const access = lama::LAMAWriteAccess<int>(array, one, false);
    std::copy(numbers.begin(), numbers.end(), access.get());
  }
  auto const read = array.read(device);  // whose place is not the host's: it has no way
  std::vector<int> there(5);
  copy(there.data(), read.data(), Bytes{20});
  EXPECT_EQ(there, numbers);
  EXPECT_EQ(array.copies().size(), 2u) << array.explain();
  EXPECT_TRUE(array.valid_at(At()));
  one->accepts = false;
  Array<int> other(numbers, "other");
  EXPECT_TRUE(says(error_of([&] { other.read(one); }), Kind::no_route,
                   {"array 'other'", "from pageable:0 to one", "override"}));
  EXPECT_TRUE(other.valid_at(At()));
}

TEST(ArrayFailures, prefetch_that_cannot_begin_throws_at_once) {
  auto const a = recorded("a");
  Array<int> array(numbers, "numbers");
  {
    Failing const failing(steps[1]);
    EXPECT_EQ(error_of([&] { array.prefetch(a); }).kind(), Kind::device_failed);
  }
  EXPECT_EQ(contents(array, a), numbers);
}

TEST(ArrayFailures, failed_prefetch_is_told_to_the_next_access_there) {
  auto const a = recorded("a"), b = recorded("b");
  test::Listener const listener;
  Array<int> array(numbers, "numbers");
  {
    Failing const failing("end a prefetch");
    array.prefetch(a)->wait();
    EXPECT_FALSE(array.valid_at(a));
    EXPECT_EQ(contents(array, b), numbers);
    EXPECT_EQ(error_of([&] { array.read(a); }).kind(), Kind::device_failed);
  }
  EXPECT_EQ(contents(array, a), numbers);
  EXPECT_TRUE(listener.warnings().empty());
  array.write(b);
  {
    Failing const failing("end a prefetch");
    array.prefetch(a);
    array.write_only(b)[0] = 6;  // does not need it
  }
  ASSERT_EQ(listener.warnings().size(), 1u);
  EXPECT_NE(listener.warnings()[0].find("prefetch at a of array 'numbers'"), std::string::npos);
  EXPECT_EQ(contents(array, a)[0], 6);
  EXPECT_EQ(copied(array), 20u + 20u + 20u);  // to b, a and a
}

// Fails the first `times` visits of a place.
struct FailingAtFirst {
  FailingAtFirst(std::string_view at, int times) : left(times) {
    hooks::install_host_hook([this, at](auto place) {
      if (place == at && left-- > 0)
        throw Error(Kind::device_failed, "copy", "the test made it fail", "");
    });
  }
  ~FailingAtFirst() { hooks::install_host_hook(nullptr); }
  FailingAtFirst(FailingAtFirst const&) = delete;

  std::atomic<int> left;
};

TEST(ArrayFailures, prefetch_whose_device_fails_is_told_once_and_the_array_stays_usable) {
  auto const a = recorded("a"), b = recorded("b");
  test::Listener const listener;
  {
    Array<int> array(numbers, "numbers");
    array.prefetch(a)->wait();
    {
      Failing const failing("ask whether a prefetch is done");
      EXPECT_FALSE(array.valid_at(a));
      EXPECT_FALSE(array.explain().empty());
      EXPECT_EQ(contents(array, b), numbers);
      EXPECT_TRUE(array.prefetch(b)->done());
    }
    {
      Failing const failing("end a prefetch");
      EXPECT_EQ(error_of([&] { array.prefetch(a); }).kind(), Kind::device_failed);
      EXPECT_EQ(contents(array, a), numbers);
      array.drop(a);
      array.prefetch(a);
    }
    Failing const failing("end a prefetch");
    array.drop(b);  // waits for the prefetch, and goes on
    EXPECT_EQ(listener.warnings().size(), 1u);
    array.prefetch(b);
    array.prefetch(a);
    Array<int> const ends(std::move(array));
  }
  ASSERT_EQ(listener.warnings().size(), 3u);
  EXPECT_NE(listener.warnings()[2].find("prefetch at "), std::string::npos);
  EXPECT_EQ(a->allocations() + b->allocations(), 0u);
}

TEST(ArrayFailures, sink_of_warnings_may_ask_the_array) {
  auto const a = recorded("a");
  Array<int> array(numbers, "numbers");
  struct Asks : EventSink {
    explicit Asks(Array<int> const& of) : array(of) {}
    void warning(std::string_view) override { text = array.explain(); }
    void log(unsigned, std::string_view) override {}
    Array<int> const& array;
    std::string text;
  };
  auto const sink = std::make_shared<Asks>(array);
  auto const before = set_event_sink(sink);
  {
    Failing const failing("end a prefetch");
    array.prefetch(a);
    array.write_only();
  }
  set_event_sink(before);
  EXPECT_NE(sink->text.find("array 'numbers'"), std::string::npos);
}

TEST(ArrayFailures, way_by_the_host_waits_for_a_prefetch_to_there) {
  // The host does not use this memory in place, but the library copies from it.
  struct Elsewhere : Context {
    Elsewhere() : Context(Place{"elsewhere", 0}) {}
    Allocation allocate(Bytes size) const override { return At().context()->allocate(size); }
  };
  auto const source = std::make_shared<Elsewhere>();
  auto const one = std::make_shared<OwnCopies>(Place{"pageable", 0}, "one");
  Array<int> array(5, "numbers");
  {
    auto const all = array.write_only(source);
    std::copy(numbers.begin(), numbers.end(), all.data());
  }
  array.prefetch({})->wait();
  {
    // The access asks three times, once after it has allocated, and finds it under way.
    FailingAtFirst const failing("end a prefetch", 3);
    EXPECT_EQ(contents(array, one), numbers);
  }
  for (auto const& copies : array.copies()) EXPECT_EQ(copies.count, 1u) << array.explain();
  EXPECT_EQ(array.copies().size(), 2u);
}

TEST(ArrayFailures, lamas_names_mean_the_same) {
  lama::LAMAArray<int> array(numbers, "numbers");
  auto const at_host = std::make_shared<lama::HostContext>();
  auto const at_pinned = std::make_shared<lama::CUDAHostContext>();
  auto const device = std::make_shared<lama::CUDAContext>(*test::copy_devices().front());
  EXPECT_TRUE(at_host->canUseData(*at_pinned));
  EXPECT_FALSE(device->canUseData(*at_host));
  {
    lama::LAMAWriteAccess<int> const access(array, at_pinned);
    EXPECT_EQ(access.get()[2], 4);
    access.get()[2] = 8;
  }
  EXPECT_EQ(lama::LAMAReadAccess<int>(array, at_host)[2], 8);
  lama::LAMAReadAccess<int> const there(array, device);
  int third = 0;
  copy(&third, there.get() + 2, Bytes{sizeof third});
  EXPECT_EQ(third, 8);
}

}  // namespace
}  // namespace meshpost
