#pragma once
#include "meshpost/base/fn.hpp"

namespace meshpost {

/// Sum, product, smaller and larger, for reductions.
struct Sum {
  template <class T>
  MESHPOST_FN T operator()(T a, T b) const {
    return a + b;
  }
};
struct Product {
  template <class T>
  MESHPOST_FN T operator()(T a, T b) const {
    return a * b;
  }
};
struct Min {
  template <class T>
  MESHPOST_FN T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  MESHPOST_FN T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

}  // namespace meshpost
