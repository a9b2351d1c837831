// Arrays that are valid in several places: what is copied, which accesses exclude each other.
#include <thread>

#include "array/recorded_context.hpp"
#include "copy/places.hpp"

namespace meshpost {
namespace {

using test::copied;
using test::copy_devices;
using test::error_of;
using test::recorded;
using test::says;

Place const host{"pageable", 0}, pinned{"pinned", 0};

std::vector<int> counting(std::size_t size, int first = 0) {
  std::vector<int> numbers(size);
  for (auto& one : numbers) one = first++;
  return numbers;
}

// The memory may be a GPU's.
template <class T>
std::vector<std::remove_const_t<T>> contents(Access<T> const& access) {
  std::vector<std::remove_const_t<T>> all(access.size());
  copy(all.data(), access.data(), Bytes{all.size() * sizeof(T)});
  return all;
}
void put(WriteAccess<int> const& access, std::vector<int> const& numbers) {
  copy(access.data(), numbers.data(), Bytes{numbers.size() * sizeof(int)});
}

TEST(Arrays, read_copies_once_for_each_place_and_write_makes_other_places_invalid) {
  auto const a = recorded("a"), b = recorded("b");
  Array<int> array(100, "numbers");
  put(array.write_only(a), counting(100));
  EXPECT_EQ(copied(array), 0u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(contents(array.read(b)), counting(100));
  EXPECT_EQ(array.copies(), (std::vector<ArrayCopies>{{"a", "b", 1, Bytes{400}}}));
  EXPECT_TRUE(array.valid_at(a) && array.valid_at(b));
  array.write(b)[0] = 7;
  EXPECT_FALSE(array.valid_at(a));
  EXPECT_EQ(array.read(a)[0], 7);
  EXPECT_EQ(array.copies(),
            (std::vector<ArrayCopies>{{"a", "b", 1, Bytes{400}}, {"b", "a", 1, Bytes{400}}}));
}

TEST(Arrays, write_copies_what_it_needs_and_write_only_nothing) {
  auto const a = recorded("a"), b = recorded("b");
  Array<int> array(10, "numbers");
  put(array.write_only(a), counting(10));
  {
    auto const access = array.write(b);
    EXPECT_EQ(contents(access), counting(10));
  }
  EXPECT_EQ(copied(array), 40u);
  put(array.write_only(a), counting(10, 5));
  EXPECT_EQ(copied(array), 40u);
  EXPECT_EQ(contents(array.read(b)), counting(10, 5));
}

TEST(Arrays, devices_and_the_host_see_the_same_elements) {
  Array<int> array(counting(5000), "numbers");
  for (auto const& device : copy_devices()) {
    EXPECT_EQ(contents(array.read(device)), counting(5000));
    put(array.write(*device), counting(5000, static_cast<int>(device->index())));
    EXPECT_EQ(contents(array.read()), counting(5000, static_cast<int>(device->index())));
    put(array.write_only(), counting(5000));
  }
}

TEST(Arrays, host_uses_pinned_memory_in_place) {
  Array<int> array(1000, "numbers");
  auto const at = array.write_only(pinned);
  auto* const memory = at.data();
  auto const same = array.read(host);
  EXPECT_EQ(same.data(), memory);
  EXPECT_EQ(same.memory(), pinned);
  EXPECT_EQ(copied(array), 0u);
}

TEST(Arrays, pinned_memory_is_not_replaced_by_pageable_memory) {
  Array<int> array(counting(1000), "numbers");
  auto const at = array.read(pinned);
  EXPECT_EQ(at.memory(), pinned);
  EXPECT_EQ(contents(at), counting(1000));
  EXPECT_EQ(copied(array), 4000u);
}

TEST(Arrays, host_uses_memory_of_devices_in_place_if_it_is_the_hosts) {
  auto const& device = copy_devices().front();
  Array<int> array(1000, "numbers");
  put(array.write_only(device), counting(1000));
  EXPECT_EQ(contents(array.read()), counting(1000));
  EXPECT_EQ(copied(array), device->in_host_memory() ? 0u : 4000u);
  // A device has its own memory, whatever kind it is.
  Array<int> other(counting(1000), "other");
  other.read(device);
  EXPECT_EQ(copied(other), 4000u);
}

TEST(Arrays, copies_come_from_pinned_memory_if_pageable_memory_is_valid_too) {
  Array<int> array(counting(1000), "numbers");
  array.read(pinned);
  array.read(copy_devices().front());
  EXPECT_EQ(array.copies().back().source, "pinned:0");
}

TEST(Arrays, large_copies_come_from_a_place_of_the_measured_machine) {
  auto const elsewhere = recorded("elsewhere");
  Array<int> array(1 << 19, "numbers");
  put(array.write_only(elsewhere), counting(1 << 19));
  array.read(pinned);
  auto const last = array.read(copy_devices().front());
  EXPECT_EQ(contents(last), counting(1 << 19));
  EXPECT_EQ(array.copies().size(), 2u) << array.explain();
}

TEST(Arrays, empty_arrays_have_no_memory_and_are_valid) {
  auto const a = recorded("a");
  Array<int> array(0, "nothing");
  EXPECT_TRUE(array.valid_at(a));
  auto const access = array.read(a);
  EXPECT_EQ(access.data(), nullptr);
  EXPECT_EQ(access.span().size() + array.write(a).size(), 0u);
  array.prefetch(a)->wait();
  EXPECT_EQ(error_of([&] { array.resize(0, Contents::keep); }).kind(), Kind::misuse);
  EXPECT_EQ(a->allocations(), 0u);
  EXPECT_EQ(copied(array), 0u);
}

TEST(Arrays, nothing_is_allocated_before_the_first_access_which_may_fail) {
  auto const a = recorded("a");
  Array<double> array(u64{1} << 59, "huge");
  EXPECT_EQ(array.size(), u64{1} << 59);
  EXPECT_EQ(error_of([&] { array.write_only(); }).kind(), Kind::out_of_memory);
  for (auto const& at : {At(pinned), At(copy_devices().front())}) {
    auto const kind = error_of([&] { array.write_only(at); }).kind();
    bool const by_driver = !copy_devices().front()->in_host_memory();  // its error is its own
    EXPECT_TRUE(kind == Kind::out_of_memory || (by_driver && kind == Kind::device_failed));
  }
  array.resize(2, Contents::discard);
  array.write_only()[1] = 3;
  EXPECT_EQ(array.read()[1], 3);
  EXPECT_EQ(error_of([] { Array<double> const more(~u64{0}, "more"); }).kind(), Kind::bad_argument);
  EXPECT_EQ(a->allocations(), 0u);
}

TEST(Arrays, prefetch_is_waited_for_by_accesses_and_counted_once) {
  for (auto const& device : copy_devices()) {
    Array<int> array(counting(1 << 20), "numbers");
    auto const event = array.prefetch(device);
    auto const again = array.prefetch(device);
    EXPECT_EQ(contents(array.read(device)), counting(1 << 20));
    event->wait(), again->wait();
    EXPECT_EQ(copied(array), 4u << 20);
    EXPECT_TRUE(array.valid_at(device));
    array.prefetch(pinned);
    put(array.write(), counting(1 << 20, 1));  // not while the prefetch reads
    EXPECT_EQ(contents(array.read(pinned)), counting(1 << 20, 1));
    array.prefetch(device);  // the destructor waits
  }
}

TEST(Arrays, drop_frees_memory_but_not_the_only_valid_copy) {
  auto const a = recorded("a"), b = recorded("b");
  Array<int> array(10, "numbers");
  array.drop(a);  // it has none there
  put(array.write_only(a), counting(10));
  EXPECT_TRUE(says(error_of([&] { array.drop(a); }), Kind::misuse,
                   {"drop at a of array 'numbers'", "no other place", "prefetch"}));
  {
    auto const live = array.read(b);
    EXPECT_TRUE(says(error_of([&] { array.drop(b); }), Kind::misuse,
                     {"drop at b", "a read access at b is live", "coherence.cpp"}));
  }
  array.drop(a);
  EXPECT_EQ(a->allocations(), 0u);
  EXPECT_EQ(contents(array.read(a)), counting(10));
  array.write(b);
  array.drop(a);  // invalid
  EXPECT_EQ(contents(array.read(a)), counting(10));
}

TEST(Arrays, resize_keeps_or_discards) {
  auto const a = recorded("a"), b = recorded("b");
  Array<int> array(10, "numbers");
  put(array.write_only(a), counting(10));
  array.read(b);
  array.resize(6, Contents::keep);
  EXPECT_EQ(contents(array.read(a)), counting(6));
  EXPECT_EQ(copied(array), 40u);  // no memory was needed
  put(array.write(b), counting(6, 3));
  array.resize(20, Contents::keep);
  auto const kept = contents(array.read(a));
  ASSERT_EQ(kept.size(), 20u);
  EXPECT_TRUE(std::equal(kept.begin(), kept.begin() + 6, counting(6, 3).begin()));
  EXPECT_EQ(a->allocations(), 1u);
  array.resize(5, Contents::discard);
  EXPECT_TRUE(
      says(error_of([&] { array.read(b); }), Kind::misuse, {"never written", "write_only"}));
  auto const live = array.write_only(b);
  EXPECT_TRUE(says(error_of([&] { array.resize(4, Contents::keep); }), Kind::misuse,
                   {"resize", "a write access at b is live"}));
}

TEST(Arrays, resize_keeps_contents_where_the_memory_is_large_enough) {
  auto const a = recorded("a"), b = recorded("b");
  Array<int> array(20, "numbers");
  put(array.write_only(a), counting(20));
  array.resize(10, Contents::keep);
  EXPECT_EQ(contents(array.read(b)), counting(10));
  array.resize(15, Contents::keep);  // fits at a only
  EXPECT_TRUE(array.valid_at(a));
  EXPECT_FALSE(array.valid_at(b));
  EXPECT_EQ(b->allocations(), 0u);
  EXPECT_EQ(contents(array.read(b)), contents(array.read(a)));
  EXPECT_EQ(copied(array), 40u + 60u);
}

// Returns other memory than it was asked for.
class WrongMemory : public Context {
 public:
  WrongMemory() : Context(Place{"pageable", 0}) {}
  std::string name() const override { return "wrong memory"; }
  bool can_use(Context const& other) const override { return &other == this; }
  Allocation allocate(Bytes size) const override {
    if (given == 0) return {};
    return Context::allocate(std::min(size, Bytes{given}));
  }
  u64 given = 0;
};

TEST(Arrays, contexts_that_allocate_too_little_are_named) {
  auto const wrong = std::make_shared<WrongMemory>();
  Array<int> array(counting(5), "numbers");
  auto const expect_errors = [&](auto const& call) {
    wrong->given = 0;
    EXPECT_TRUE(says(error_of(call), Kind::out_of_memory,
                     {"bytes at wrong memory for array 'numbers'", "no memory"}));
    wrong->given = 12;
    EXPECT_TRUE(says(error_of(call), Kind::bad_argument,
                     {"bytes at wrong memory for array 'numbers'", "only 12 bytes", "allocate()"}));
  };
  expect_errors([&] { array.read(wrong); });
  expect_errors([&] { array.write_only(wrong); });
  expect_errors([&] { array.prefetch(wrong); });
  wrong->given = 20;
  array.write(wrong);
  expect_errors([&] { array.resize(100, Contents::keep); });
  EXPECT_EQ(contents(array.read(wrong)), counting(5));
}

TEST(Arrays, accesses_move_and_end_once) {
  auto const a = recorded("a"), b = recorded("b");
  Array<int> array(10, "numbers");
  auto first = array.write_only(a);
  auto second = std::move(first);
  EXPECT_FALSE(first.live());
  EXPECT_TRUE(second.live());
  first.release();
  EXPECT_TRUE(says(error_of([&] { array.write(b); }), Kind::misuse, {"is live"}));
  second.release();
  second.release();
  EXPECT_EQ(second.data(), nullptr);
  EXPECT_EQ(error_of([&] { static_cast<void>(second.memory()); }).kind(), Kind::misuse);
  second = array.write(b);
  EXPECT_EQ(error_of([&] { second = array.write_only(b); }).kind(), Kind::misuse);
  EXPECT_TRUE(second.live());
}

}  // namespace
}  // namespace meshpost
