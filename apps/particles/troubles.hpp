#pragma once
// The error for what a kernel has noted.
#include "lists.hpp"
#include "problem.hpp"

namespace particles {

/// The one that comes first; neither needs to be there.
Trouble earlier(Trouble const& a, Trouble const& b);

/// Throws the error for `trouble`, if there is one. `reach`: how far a particle may go in a step.
/// \throws Error(bad_argument)
void throw_for(Trouble const& trouble, Problem const& problem, double reach);

}  // namespace particles
