#pragma once
#include "meshpost/rma/window.hpp"

// What Rank's puts of strided pieces take; rma/detail/strided.hpp: how they work.

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
/// Spans of equal elements, of which one or both have a layout.
template <class Target, class Source>
concept StridedPut = requires(Target const& target, Source const& source) {
  same_elements(span_of(target), span_of(source));
} && (requires(Target const& target) { target.layout; } ||
      requires(Source const& source) { source.layout; });

}  // namespace meshpost::detail
