#pragma once
// The physics: the force between two particles, and a step in time.
#include <cmath>

#include "lanes.hpp"

namespace particles {

/// The physics of a run, in the numbers that the kernels use. The mass of each particle is 1.
template <class Real>
struct Model {
  Real cutoff, cutoff_squared, inverse_cutoff;
  Real strength, dt;
  Real width;   ///< of the domain, along x
  Real height;  ///< of a segment, along y; at least the cutoff
  Real reach;   ///< a particle may go so far in a step: a segment's height, but not over the domain
  u32 segments;
};

template <class Real>
struct Vector {
  Real x, y;
};

/// Adds the force on a particle by another one at distance (dx, dy), which points to the first:
///     F = strength (1 - r / cutoff)^2 (dx, dy) / r    if 0 < r < cutoff, else 0
/// At r = 0 it has no direction, and is 0. A particle adds nothing to its own force.
template <class Real>
MESHPOST_FN inline void add_force(Model<Real> const& model, Real dx, Real dy, Vector<Real>& sum) {
  Real const squared = dx * dx + dy * dy;
  if (!(squared < model.cutoff_squared) || !(squared > Real(0))) return;
  Real const r = std::sqrt(squared), q = Real(1) - r * model.inverse_cutoff;
  Real const scale = model.strength * q * q / r;
  sum.x += scale * dx;
  sum.y += scale * dy;
}

/// A particle in a segment. Positions along y count from the lower edge of its segment, so that
/// they have as many digits in a long domain as in a short one.
template <class Real>
struct Particle {
  Real x, y, vx, vy;
};

/// Where a step took a particle.
template <class Real>
struct Moved {
  Particle<Real> particle;  ///< its y counts from the edge of the segment where it is now
  int way;                  ///< -1: to the segment below, 0: it stays, 1: to the one above
  bool far;                 ///< it went farther than a segment, or it is nowhere (NaN)
  Real distance;            ///< how far, along x or y
};

/// A step of leapfrog: velocities are those between two steps,
///     v(n + 1/2) = v(n - 1/2) + F(n) dt,  x(n + 1) = x(n) + v(n + 1/2) dt
/// Walls reflect.
template <class Real>
MESHPOST_FN inline Moved<Real> move(Model<Real> const& model, Particle<Real> p, Vector<Real> force,
                                    u32 segment) {
  p.vx = p.vx + force.x * model.dt;
  p.vy = p.vy + force.y * model.dt;
  Real const dx = p.vx * model.dt, dy = p.vy * model.dt;
  Real const along_x = std::abs(dx), along_y = std::abs(dy);
  bool const far = !(along_x <= model.reach && along_y <= model.reach);  // also for NaN
  p.x = p.x + dx;
  p.y = p.y + dy;
  int way = 0;
  if (p.x < Real(0)) {
    p.x = -p.x;
    p.vx = -p.vx;
  } else if (p.x > model.width) {
    p.x = model.width - (p.x - model.width);
    p.vx = -p.vx;
  }
  if (p.y < Real(0)) {
    if (segment > 0) {
      way = -1;
      p.y = p.y + model.height;
    } else {
      p.y = -p.y;
      p.vy = -p.vy;
    }
  } else if (p.y >= model.height) {
    if (segment + 1 < model.segments) {
      way = 1;
      p.y = p.y - model.height;
    } else {
      p.y = model.height - (p.y - model.height);
      p.vy = -p.vy;
    }
  }
  return {p, way, far, along_x > along_y ? along_x : along_y};
}

}  // namespace particles
