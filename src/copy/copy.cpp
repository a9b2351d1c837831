#include "meshpost/copy/copy.hpp"

#include "base/host_calls.hpp"
#include "copy/order.hpp"
#include "copy/request.hpp"

namespace meshpost {
namespace {

using copying::Request;
using copying::StatePtr;

StatePtr begin(Request const& request, CopyOptions const& options) {
  if (options.streams.empty()) return copying::start(request);
  copying::Work work{[request] { copying::start(request)->wait(); }, nullptr};
  bool const locked = request.to.for_engines() && request.from.for_engines();
  if (request.by_engine() || locked)
    work.queue = [request](Stream& stream) { copying::queue(request, stream); };
  return copying::between(options.streams, work);
}

StatePtr nothing(CopyOptions const& options) {
  if (options.streams.empty()) return copying::finished();
  return copying::between(options.streams, {[] {}, [](Stream&) {}});
}

}  // namespace

Copy copy_async(void* target, void const* source, Bytes size, CopyOptions const& options) {
  copying::check_caller("copy");
  if (size == 0) return Copy(nothing(options));
  PitchedCopy rows;
  rows.target = target, rows.source = source, rows.width = size;
  return Copy(begin(copying::check_request(rows), options));
}

Copy copy_async(void* target, Pitch target_pitch, void const* source, Pitch source_pitch,
                BlockShape shape, CopyOptions const& options) {
  copying::check_caller("copy");
  if (shape.width == 0 || shape.rows == 0 || shape.slices == 0) return Copy(nothing(options));
  PitchedCopy const rows{target,      target_pitch.row, target_pitch.slice,
                         source,      source_pitch.row, source_pitch.slice,
                         shape.width, shape.rows,       shape.slices};
  return Copy(begin(copying::check_request(rows), options));
}

void copy(void* target, void const* source, Bytes size, std::source_location where) {
  HostCall call(HostCallKind::write, "copy", where);
  call.about([] { return "a copy"; });
  copying::check_caller("copy");
  if (size == 0) return;
  PitchedCopy rows;
  rows.target = target, rows.source = source, rows.width = size;
  copying::make(copying::check_request(rows));
}

}  // namespace meshpost
