// Copies whose memory or devices, which the driver knows, change meanwhile.
#include <cuda_runtime.h>

#include "copy/places.hpp"

namespace meshpost::test {
namespace {

#define SKIP_WITHOUT_GPU() \
  if (!on_gpus()) GTEST_SKIP() << "needs a GPU"

// Pages of the host that can be registered with CUDA.
class Pages {
 public:
  explicit Pages(u64 size) : size_(size) {
    data_ = static_cast<u8*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~Pages() { munmap(data_, size_); }
  Pages(Pages const&) = delete;
  Pages& operator=(Pages const&) = delete;
  u8* data() const { return data_; }
  u64 size() const { return size_; }

 private:
  u8* data_;
  u64 size_;
};

void expect_copied(Pages const& from, std::mt19937_64& random) {
  auto const bytes = random_data(random, from.size());
  std::memcpy(from.data(), bytes.data(), bytes.size());
  Memory target({0, MemoryKind::device}, from.size());
  target.fill(0xee);
  copy(target.data(), from.data(), Bytes{from.size()});
  EXPECT_EQ(target.get(), bytes);
}

TEST(CopyOfRegisteredMemory, is_right_before_while_and_after_it_is_registered) {
  SKIP_WITHOUT_GPU();
  copy_devices();
  std::mt19937_64 random(new_seed());
  for (u64 const size : {u64{8} << 10, u64{64} << 20}) {
    Pages const pages(size);
    for (int times = 0; times < 3; ++times) {
      expect_copied(pages, random);
      ASSERT_EQ(cudaHostRegister(pages.data(), size, cudaHostRegisterDefault), cudaSuccess);
      expect_copied(pages, random);
      ASSERT_EQ(cudaHostUnregister(pages.data()), cudaSuccess);
    }
  }
}

TEST(CopyOfRegisteredMemory, of_which_a_part_is_registered_names_the_limit) {
  SKIP_WITHOUT_GPU();
  copy_devices();
  constexpr u64 size = u64{4} << 20;
  Pages const pages(size);
  ASSERT_EQ(cudaHostRegister(pages.data(), size / 2, cudaHostRegisterDefault), cudaSuccess);
  Memory target({0, MemoryKind::device}, size);
  target.fill(0xee);
  auto const error = error_of([&] { copy(target.data(), pages.data(), Bytes{size}); });
  EXPECT_EQ(error.kind(), Kind::bad_argument);
  EXPECT_NE(error.cause().find("ends after 2097152"), std::string::npos) << error.what();
  EXPECT_NE(error.remedy().find("register"), std::string::npos) << error.what();
  EXPECT_EQ(target.get(), std::vector<u8>(size, 0xee)) << "something was copied";
  ASSERT_EQ(cudaHostUnregister(pages.data()), cudaSuccess);
}

// A program that unregisters memory in use by a copy breaks copy_async's rule. The copy must not
// hang, nor harm later ones. The driver may refuse it, or wait.
TEST(CopyOfRegisteredMemory, that_is_unregistered_half_way_ends) {
  SKIP_WITHOUT_GPU();
  copy_devices();
  std::mt19937_64 random(new_seed());
  constexpr u64 size = u64{512} << 20;
  Pages const pages(size);
  auto const bytes = random_data(random, size);
  std::memcpy(pages.data(), bytes.data(), size);
  Memory target({0, MemoryKind::device}, size);
  ASSERT_EQ(cudaHostRegister(pages.data(), size, cudaHostRegisterDefault), cudaSuccess);
  auto under_way = copy_async(target.data(), pages.data(), Bytes{size});
  bool const refused = cudaHostUnregister(pages.data()) != cudaSuccess;
  cudaGetLastError();
  try {
    under_way.wait();
    EXPECT_EQ(target.get(), bytes);
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), Kind::device_failed) << error.what();
  }
  if (refused) cudaHostUnregister(pages.data());
  cudaGetLastError();
  expect_copied(pages, random);
}

__global__ void trap() { asm("trap;"); }

// After a failed kernel its process can't use the device any more. So this is another process.
void copy_while_the_device_is_lost() {
  constexpr u64 size = u64{256} << 20;
  Memory source({0, MemoryKind::device}, size), target({0, MemoryKind::pinned}, size);
  std::vector<Copy> under_way;
  for (int i = 0; i < 8; ++i)
    under_way.push_back(copy_async(target.data(), source.data(), Bytes{size}));
  cudaSetDevice(static_cast<int>(copy_devices()[0]->index()));
  trap<<<1, 1>>>();
  for (auto& one : under_way) try {
      one.wait();  // may have ended before
    } catch (Error const& error) {
      if (error.kind() != Kind::device_failed) std::_Exit(3);
    }
  if (cudaDeviceSynchronize() == cudaSuccess) std::_Exit(6);
  try {
    copy(target.data(), source.data(), Bytes{size});
  } catch (Error const& error) {
    std::fprintf(stderr, "later: %s\n", error.what());
    std::_Exit(error.kind() == Kind::device_failed ? 0 : 4);
  }
  std::_Exit(5);
}

TEST(CopyOfALostDeviceDeathTest, throws_now_and_later_and_does_not_hang) {
  SKIP_WITHOUT_GPU();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(copy_while_the_device_is_lost(), testing::ExitedWithCode(0), "later: .*cuda:0");
}

}  // namespace
}  // namespace meshpost::test
