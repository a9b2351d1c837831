// Accesses that end with an event: who waits for it, and events that fail.
#include <gmock/gmock.h>

#include <thread>

#include "array/recorded_context.hpp"
#include "copy/places.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::recorded;
using test::says;

// An event that the test ends. As a CUDA event, it throws from all functions if its device failed.
class EventByHand : public Event {
 public:
  bool done() override {
    check();
    return ended;
  }
  void wait() override {
    check();
    while (!ended) std::this_thread::yield();
  }
  void then(std::function<void()> action) override {
    wait();
    action();
  }

  std::atomic<bool> ended{false}, fails{false};

 private:
  void check() const {
    if (fails) throw Error(Kind::device_failed, "event by hand", "the test made it fail", "");
  }
};

// Ends an event a little later.
class EndsLater {
 public:
  EndsLater()
      : thread_([this] {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          event->ended = true;
        }) {}
  ~EndsLater() { thread_.join(); }

  std::shared_ptr<EventByHand> const event = std::make_shared<EventByHand>();

 private:
  std::thread thread_;
};

TEST(ArrayEvents, later_accesses_to_the_same_memory_wait_for_the_work) {
  for (At const& at : {At(), At(Place{"pinned", 0}), At(recorded("a"))}) {
    Array<int> array(10, "numbers");
    auto const expect_wait = [&](auto const& access, auto const& later) {
      EndsLater const work;
      access().release_after(work.event);
      later();
      EXPECT_TRUE(work.event->ended) << array.explain();
    };
    auto const write_only = [&] { return array.write_only(at); };
    expect_wait(write_only, [&] { array.read(at); });
    expect_wait(write_only, [&] { array.read(); });  // uses the same memory
    expect_wait(write_only, [&] { array.write(at); });
    expect_wait(write_only, [&] { array.prefetch(at)->wait(); });
    expect_wait([&] { return array.write(at); }, [&] { array.prefetch({})->wait(); });
    expect_wait([&] { return array.read(at); }, [&] { array.write(at); });
    expect_wait([&] { return array.read(at); }, [&] { array.write_only(); });
  }
}

TEST(ArrayEvents, reads_do_not_wait_for_reads) {
  Array<int> array(std::vector<int>(10, 7), "numbers");
  auto const event = std::make_shared<EventByHand>();
  array.read().release_after(event);
  EXPECT_EQ(array.read()[9], 7);
  array.prefetch({})->wait();
  EXPECT_FALSE(event->ended);
  event->ended = true;
}

TEST(ArrayEvents, failed_event_is_told_once_and_the_array_stays_usable) {
  auto const a = recorded("a");
  Array<int> array(std::vector<int>(10, 7), "numbers");
  auto const event = std::make_shared<EventByHand>();
  array.read(a).release_after(event);
  event->fails = true;
  EXPECT_EQ(array.read(a)[9], 7);
  EXPECT_TRUE(says(error_of([&] { array.write(a); }), Kind::device_failed, {"event by hand"}));
  array.write(a)[9] = 8;
  EXPECT_EQ(array.read()[9], 8);
}

TEST(ArrayEvents, destructor_reports_each_failed_event_and_frees_the_memory) {
  auto const a = recorded("a"), b = recorded("b");
  test::Listener const listener;
  {
    Array<int> array(std::vector<int>(10, 7), "numbers");
    auto const first = std::make_shared<EventByHand>(), second = std::make_shared<EventByHand>();
    array.read(a).release_after(first);
    array.read(b).release_after(second);
    first->fails = second->fails = true;
  }
  auto const texts = listener.warnings();
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_THAT(texts[0], testing::HasSubstr("destroy at a of array 'numbers' (events.cpp:"));
  EXPECT_THAT(texts[1], testing::HasSubstr("destroy at b of array 'numbers' (events.cpp:"));
  EXPECT_THAT(texts[1], testing::HasSubstr("the test made it fail"));
  EXPECT_EQ(a->allocations() + b->allocations(), 0u);
}

TEST(ArrayEvents, destroyed_array_keeps_memory_until_the_event_without_waiting) {
  auto const a = recorded("a"), b = recorded("b");
  auto array = std::make_unique<Array<int>>(std::vector<int>(10, 7), "short");
  auto at_a = array->read(a), again_at_a = array->read(a), at_b = array->read(b);
  array = nullptr;
  auto const first = std::make_shared<EventByHand>(), second = std::make_shared<EventByHand>(),
             failed = std::make_shared<EventByHand>();
  auto const allocations_after_a_call = [&] {
    Array<int>(1).write_only();  // it frees what nobody uses any more
    return std::pair(a->allocations(), b->allocations());
  };
  at_a.release_after(first);  // an event that blocked here would never end
  again_at_a.release_after(second);
  EXPECT_EQ(allocations_after_a_call(),
            std::pair(std::size_t{1}, std::size_t{1}));  // one access is live
  failed->fails = true;
  at_b.release_after(failed);
  EXPECT_EQ(allocations_after_a_call(), std::pair(std::size_t{1}, std::size_t{0}));
  first->ended = true;
  EXPECT_EQ(allocations_after_a_call(), std::pair(std::size_t{1}, std::size_t{0}));
  second->ended = true;
  EXPECT_EQ(allocations_after_a_call(), std::pair(std::size_t{0}, std::size_t{0}));
}

}  // namespace
}  // namespace meshpost
