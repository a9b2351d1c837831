// Errors of copies with wrong memory.
#include <thread>

#include "copy/places.hpp"

namespace meshpost {
namespace {

using test::all_places;
using test::copy_devices;
using test::error_of;
using test::Memory;
using test::says;

TEST(Misuse, null_pointers_are_named) {
  std::vector<u8> bytes(8);
  EXPECT_TRUE(says(error_of([&] { copy(nullptr, bytes.data(), Bytes{8}); }), Kind::bad_argument,
                   {"copy of 8 bytes", "the target", "null pointer"}));
  EXPECT_TRUE(says(error_of([&] { copy(bytes.data(), nullptr, Bytes{8}); }), Kind::bad_argument,
                   {"the source", "null pointer"}));
}

TEST(Misuse, freed_memory_of_devices_is_found) {
  std::vector<u8> bytes(5'000'000);
  for (auto const& device : copy_devices())
    for (u64 const size : {u64{1}, u64{100'000}, u64{5'000'000}}) {
      auto memory = device->allocate(Bytes{size}, MemoryKind::device);
      auto* const at = memory.as<u8>();
      copy(at, bytes.data(), Bytes{size});
      memory = Allocation();
      for (u64 const offset : {u64{0}, size / 2}) {
        auto const error = error_of([&] { copy(at + offset, bytes.data(), Bytes{1}); });
        // A driver may have put something else there.
        EXPECT_TRUE(says(error, Kind::bad_argument,
                         {"the target", "of " + physical(device)->name() + " that was freed"}));
      }
      EXPECT_TRUE(says(error_of([&] { copy(bytes.data(), at, Bytes{1}); }), Kind::bad_argument,
                       {"the source", "freed"}));
    }
}

TEST(Misuse, memory_that_follows_freed_memory_there_is_usable) {
  for (int i = 0; i < 2000; ++i) {
    auto memory = copy_devices().front()->allocate(Bytes{u64{1} << (i % 14)}, MemoryKind::device);
    memory = Allocation();
    std::vector<u8> after(u64{1} << (i % 14), 3), other(after.size());
    copy(other.data(), after.data(), Bytes{after.size()});
    ASSERT_EQ(other, after);
  }
}

TEST(Misuse, more_bytes_than_the_allocation_holds_are_refused_with_both_numbers) {
  std::vector<u8> bytes(1000);
  for (auto const& where : all_places()) {
    if (where.kind == MemoryKind::pageable) continue;
    Memory memory(where, 512);
    EXPECT_TRUE(says(error_of([&] { copy(memory.data() + 12, bytes.data(), Bytes{501}); }),
                     Kind::bad_argument, {"the target", "501 bytes", "ends after 500"}))
        << where.name();
    EXPECT_TRUE(says(error_of([&] { copy(bytes.data(), memory.data(), Bytes{513}); }),
                     Kind::bad_argument, {"the source", "ends after 512"}));
    copy(memory.data() + 12, bytes.data(), Bytes{500});
  }
}

TEST(Misuse, host_pages_that_are_not_mapped_are_found) {
  u64 const page = 4096, all = 2003;
  auto* const pages = static_cast<u8*>(
      mmap(nullptr, all * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  // A sanitizer's allocator maps single pages, Linux at the highest gap. The other holes make them
  // use those first.
  for (u64 i = 4; i < all; i += 2) munmap(pages + i * page, page);
  munmap(pages + page, page);
  std::vector<u8> bytes(3 * page, 1);
  for (auto const& [offset, size] :
       {std::pair{page, u64{1}}, {u64{0}, page + 1}, {page - 1, 2 * page}})
    EXPECT_TRUE(
        says(error_of([&, at = offset, n = size] { copy(pages + at, bytes.data(), Bytes{n}); }),
             Kind::bad_argument, {"the target", "not all of them are mapped"}));
  copy(pages, bytes.data(), Bytes{page});
  copy(pages + 2 * page, bytes.data(), Bytes{page});
  EXPECT_TRUE(says(error_of([&] { copy(bytes.data(), pages, Bytes{~u64{0}}); }), Kind::bad_argument,
                   {"18446744073709551615 bytes", "not all of them are mapped"}));
  munmap(pages, page), munmap(pages + 2 * page, page);
  for (u64 i = 3; i < all; i += 2) munmap(pages + i * page, page);
}

TEST(Misuse, overlapping_source_and_target_are_refused) {
  for (auto const& where : all_places()) {
    Memory memory(where, 300'000);
    auto* const at = memory.data();
    for (auto const& [to, from, size] :
         {std::array<u64, 3>{0, 0, 1}, {0, 1, 2}, {100, 0, 101}, {5, 150'000, 149'996}})
      EXPECT_TRUE(
          says(error_of([&, t = to, f = from, n = size] { copy(at + t, at + f, Bytes{n}); }),
               Kind::bad_argument, {"overlap", "third place"}))
          << where.name();
    copy(at + 150'000, at, Bytes{150'000});
  }
}

TEST(Misuse, null_streams_and_devices_are_refused) {
  std::vector<u8> a(8), b(8);
  EXPECT_TRUE(says(error_of([&] { copy_async(a.data(), b.data(), Bytes{8}, {{nullptr}}); }),
                   Kind::bad_argument, {"streams is null"}));
  EXPECT_TRUE(
      says(error_of([&] { use_devices_for_copies({}); }), Kind::bad_argument, {"no device"}));
  EXPECT_TRUE(
      says(error_of([&] { use_devices_for_copies({nullptr}); }), Kind::bad_argument, {"null"}));
}

}  // namespace
}  // namespace meshpost
