#pragma once
#include "array/coherence_state.hpp"

namespace meshpost::detail {

/// The turn of a call that allocates, copies or frees.
struct LiveAccess::State::Turn {
  explicit Turn(State& of, bool closes = false) : state(of), lock(of.moving) {
    Lock const fields(state.mutex);
    state.changing = true;
    state.closed = closes;
  }
  ~Turn() {
    Lock const fields(state.mutex);
    state.changing = state.closed = false;
  }
  Turn(Turn const&) = delete;

  State& state;
  Lock lock;
};

}  // namespace meshpost::detail
