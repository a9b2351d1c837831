#pragma once
#include "meshpost/rma/window.hpp"

// The parameters of Rank's puts of strided pieces; rma/detail/strided.hpp has their code.

namespace meshpost::detail {

template <class Side>
MESHPOST_FN constexpr auto const& span_of(Side const& side) {
  if constexpr (requires { side.layout; }) return side.span;
  else return side;
}
template <class T, class U>
MESHPOST_FN constexpr bool same_elements(RemoteSpan<T> const&, LocalSpan<U> const&) {
  return same<T, Plain<U>>;
}
/// Spans of equal elements; one or both have a layout.
template <class Target, class Source>
concept StridedPut = requires(Target const& target, Source const& source) {
  same_elements(span_of(target), span_of(source));
} && (requires(Target const& target) { target.layout; } ||
      requires(Source const& source) { source.layout; });

}  // namespace meshpost::detail
