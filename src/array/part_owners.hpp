#pragma once
// Which process of a job has which parts of an array.
#include <string>
#include <vector>

#include "world/process_group.hpp"

namespace meshpost {

constexpr char const* make_a_plan = "make a plan";

/// Arguments of a process for a plan. All must give the same, except the number of parts.
struct PlanRequest {
  u64 parts_here;
  u32 parts;              ///< of the array
  u64 fingerprint;        ///< of what must be the same,
  std::string described;  ///< and as text
  char const* what;       ///< such as "another distribution"
  char const* remedy;     ///< if processes differ
  char const* of_parts;   ///< what is given for each part, such as "needs"
  char const* one;        ///< and of one, such as "one list"
};

struct Owners {
  std::vector<u32> processes;  ///< by part
  std::vector<u32> first;      ///< part, by process
};

/// Collective. \throws Error(bad_argument) in all processes if they give something else each, or
/// not as many parts as the array has
Owners find_owners(ProcessGroup const& group, PlanRequest const& request);

}  // namespace meshpost
