#pragma once
#include "meshpost/compat/dcuda/detail/state.hpp"

namespace meshpost::compat {
struct DcudaFlush {};
__device__ inline Rank rank_of(dcuda_state const& gst);
}  // namespace meshpost::compat

/// See dcuda_device.cu.h. Takes text, numbers, characters and pointers. A line holds 175 characters
/// and 8 values; the rest goes into a second line.
class dcuda_log {
 public:
  __device__ explicit dcuda_log(dcuda_state& gst, bool prints) : gst_(&gst), prints_(prints) {
    clear();
  }

  template <class T>
  __device__ dcuda_log& operator<<(T value) {
    using meshpost::compat::DcudaFlush;
    if (!prints_) return *this;
    if constexpr (meshpost::same<T, DcudaFlush>) {
      send();
    } else if constexpr (meshpost::same<T, char const*> || meshpost::same<T, char*>) {
      add_text(value);
    } else {
      if (used_ + 2 > most_characters || values_ == meshpost::LogRecord::most_arguments) send();
      line_.text[used_++] = '{';
      line_.text[used_++] = '}';
      meshpost::detail::pack(line_, values_++, value);
    }
    return *this;
  }

  meshpost::compat::DcudaFlush flush;  ///< ends the line

 private:
  static constexpr meshpost::u32 most_characters = sizeof(meshpost::LogRecord::text) - 1;

  __device__ void add_text(char const* text) {
    for (; text && *text; ++text) {
      bool const brace = *text == '{' || *text == '}';  // double it to print one
      if (used_ + 1 + brace > most_characters) send();
      line_.text[used_++] = *text;
      if (brace) line_.text[used_++] = *text;
    }
  }
  __device__ void clear() {
    used_ = values_ = 0;
    if (!prints_) return;
    for (auto& type : line_.types) type = meshpost::LogRecord::Type::none;
  }
  __device__ void send() {
    line_.text[used_] = 0;
    meshpost::compat::rank_of(*gst_).send(line_);
    clear();
  }

  dcuda_state* gst_;
  bool prints_;  // this is the rank's thread 0
  meshpost::u32 used_, values_;
  meshpost::LogRecord line_;
};

__device__ inline dcuda_log dcuda_log_get(dcuda_state& gst) {
  return dcuda_log(gst, meshpost::compat::rank_of(gst).thread() == 0);
}
