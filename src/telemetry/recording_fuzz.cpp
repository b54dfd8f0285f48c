// Any line is a snapshot or an Error; a snapshot is written and read again as the same line.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "telemetry/recording.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto snapshot = muster::read_recording_line({reinterpret_cast<const char*>(data), size});
  if (!snapshot) return 0;
  const auto line = muster::recording_line(*snapshot, {});
  const auto again = muster::read_recording_line(line);
  if (!again || muster::recording_line(*again, {}) != line) __builtin_trap();
  return 0;
}
