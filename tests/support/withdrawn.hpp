#pragma once
#include <sys/mman.h>
#include <meshpost/meshpost.hpp>

#include <atomic>

// A rank of a CPU device leaves a failed run while the proxy is about to access its memory.

namespace meshpost::test {

/// One page and more, unmapped as soon as it is freed: a later access ends the process.
struct Pages {
  static constexpr u64 size = u64{64} << 10;
  Pages()
      : memory(static_cast<char*>(
            mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Pages() { munmap(memory, size); }
  Pages(Pages const&) = delete;
  Pages& operator=(Pages const&) = delete;
  char* const memory;
};

/// Of one run: the proxy is about to touch rank 0's memory; rank 0 has freed it.
struct Moments {
  std::atomic<bool> about_to{false}, freed{false};

  void meet() {
    about_to = true;
    about_to.notify_all();
    freed.wait(false);
  }
};

/// With two ranks a device and one worker. The last rank's device is out of reach.
struct FreesWhatIsUnderWay {
  static constexpr char const* place(bool gets) { return gets ? "fill a target" : "read a source"; }

  Window<char> window;
  bool gets;
  Moments* moments;
  void operator()(Rank& self) const {
    struct AtLast {
      Moments& moments;
      ~AtLast() {
        moments.freed = true;
        moments.freed.notify_all();
      }
    };
    if (self.id() == 0) {
      AtLast const freed{*moments};
      Pages const pages;
      LocalSpan<char> const mine(pages.memory, Pages::size);
      auto const far = window.at(RankId{self.size() - 1}, 0);
      if (gets) self.get(mine, far);
      else self.put(far, mine);
    } else if (self.id() == 1) {  // rank 0's worker is busy: the proxy's thread does its work
      while (!moments->about_to) self.test(window, Tag{0});
      self.fail("the input is odd");
    }
  }
};

}  // namespace meshpost::test
