#pragma once
#include <string>

#include "common/study/options.hpp"

namespace stencil {

/// The command line.
struct Options : meshpost::apps::StudyOptions {
  /// Of a multiprocessor. Kernel::max_threads is the same number.
  static constexpr meshpost::u32 most_threads = 512;

  meshpost::u32 levels = 26, rows = 320, columns = 128, groups = 0, iterations = 200, seed = 1;
  meshpost::u32 threads = most_threads;
  bool strong = false;
  std::string precision = "float", initial, scratch = "auto";
};

/// \return the exit status: 1 if something was wrong
int run(Options const& options);

}  // namespace stencil
