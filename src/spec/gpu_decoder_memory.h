#pragma once

#include <cstdint>

#include "spec/decoder_spec.h"

namespace muster {

/// What the engine takes for a decoder on a GPU beside weights, cache and the rows of a step: who
/// plans a worker and who computes one read the same figures. All sizes are in bytes.
///
/// Threads: pure. Needs: a spec whose sizes were checked when it was read (`DecoderSpec`).

/// A layer gathers the keys and values of so many positions at once, or those of one sequence that
/// has more: blocks that sequences share are gathered for each of them, so the cache is no bound.
inline constexpr std::uint64_t kGatheredKeysMost = 16384;

/// What is gathered for so many: at least as many, rounded up to 16 or an eighth of the power of
/// two below. The keys of a step grow by one for each sequence, and torch's allocator keeps what it
/// had for each size; of these there are eight between a number and its double.
std::uint64_t gathered_keys(std::uint64_t count);

/// The most that one layer gathers, with keys P = gathered_keys(max(kGatheredKeysMost, length)), k
/// heads of keys and n of queries, of d elements of e bytes:
///
///   2 P e (k d                      keys and values
///          + k up8(d)               where d is no multiple of 8: padded
///          + n up8(d))              fp32 with k < n: repeated for each head of queries
///
/// is_wide: fp32, else 16 bits; length: tokens of the longest sequence.
/// Source: src/engine/decoder/device_decoder.cpp, attend; src/engine/ops/cached_attention.cpp.
std::uint64_t gpu_gather_bytes(const DecoderSpec& spec, bool is_wide, std::uint64_t length);

/// A step at its largest.
struct GpuStep {
  std::uint64_t rows = 0;        // tokens, as products take them
  std::uint64_t logit_rows = 0;  // likewise
  std::uint64_t sequences = 0;   // at most `rows`
  std::uint64_t length = 0;      // tokens of the longest one
};

/// The most that the lists of one step take on the device, with R rows, L rows of logits and S
/// sequences of T tokens. A row of padding is a sequence of one key; sequences are gathered in at
/// most S + 1 groups, and a group of k keys has gathered_keys(k) slots, k + k / 8 + 16 at most:
///
///   4 (3 R + L                      ids, positions and slots of rows; rows that have logits
///      + 2 (R + S + 1)              where queries and keys of each sequence begin
///      + 9 / 8 K + 16 (S + 1))      slots of all keys that are seen: K = S T + R
///   + 8 R                           slots of rows once more, as copies want them
///   + 4 R r                         cosines and sines of rows, where r elements turn
///
/// Source: src/engine/decoder/step_layout.cpp; device_decoder.cpp, to_device.
std::uint64_t gpu_list_bytes(const DecoderSpec& spec, const GpuStep& step);

/// Cosines and sines in float32 of every position that the model was made for; 0 without rotation.
/// Source: src/engine/decoder/device_decoder.cpp, make_rotations.
std::uint64_t gpu_rotation_bytes(const DecoderSpec& spec);

}  // namespace muster
