// The sizes of the tensors that a decoder on a GPU has for attention, taken from where they are
// made.

#include "spec/gpu_decoder_memory.h"

#include <algorithm>
#include <bit>

namespace muster {
namespace {

constexpr std::uint64_t kFloat = 4;
constexpr std::uint64_t kHalf = 2;       // bytes of bfloat16
constexpr std::uint64_t kAlignment = 8;  // src/engine/ops/cached_attention.cpp

}  // namespace

std::uint64_t gathered_keys(std::uint64_t count) {
  const auto step = std::max<std::uint64_t>(16, std::bit_floor(count) / 8);
  return (count + step - 1) / step * step;
}

std::uint64_t gpu_gather_bytes(const DecoderSpec& spec, bool is_wide, std::uint64_t length) {
  const std::uint64_t size = spec.head_size;
  const std::uint64_t padded = (size + kAlignment - 1) / kAlignment * kAlignment;
  std::uint64_t values = spec.kv_head_count * size;
  if (padded != size) values += spec.kv_head_count * padded;
  if (is_wide && spec.kv_head_count < spec.head_count) values += spec.head_count * padded;
  return 2 * gathered_keys(std::max(kGatheredKeysMost, length)) * values *
         (is_wide ? kFloat : kHalf);
}

std::uint64_t gpu_list_bytes(const DecoderSpec& spec, const GpuStep& step) {
  constexpr std::uint64_t kNumber = 4;
  constexpr std::uint64_t kWideNumber = 8;
  const auto keys = step.sequences * step.length + step.rows;
  const auto groups = step.sequences + 1;
  const auto key_slots = keys + (keys + 7) / 8 + 16 * groups;
  const auto numbers = 3 * step.rows + step.logit_rows + 2 * (step.rows + groups) + key_slots;
  const std::uint64_t turning = spec.rope.style == RopeStyle::None ? 0 : spec.rope.size;
  return kNumber * numbers + kWideNumber * step.rows + kFloat * turning * step.rows;
}

std::uint64_t gpu_rotation_bytes(const DecoderSpec& spec) {
  if (spec.rope.style == RopeStyle::None) return 0;
  return std::uint64_t{spec.length_max} * spec.rope.size * kFloat;
}

}  // namespace muster
