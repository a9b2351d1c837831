#pragma once
#include <string>

#include "common/study/options.hpp"

namespace particles {

/// The command line.
struct Options : meshpost::apps::StudyOptions {
  double width = 416, length = 416, cutoff = 1, dt = 0.01, strength = 10, speed = 1;
  meshpost::u64 particles = 41'600, seed = 1;
  meshpost::u32 steps = 100, capacity = 0, every = 0;
  std::string precision = "float", initial, frames;
};

/// \return the exit status: 1 if something was wrong
int run(Options const& options);

}  // namespace particles
