#pragma once

#include <cstdint>
#include <vector>

namespace muster {

/// Which two elements of a head are turned together.
enum class RopeStyle : std::uint8_t {
  None,
  Halves,  // i and i + size / 2: Hugging Face's order, and GGUF's for all but Llama
  Pairs,   // 2 i and 2 i + 1: GGUF's order for Llama, Mistral and Mixtral
};

enum class RopeScaling : std::uint8_t {
  None,
  Linear,   // positions are divided by `factor`
  Dynamic,  // NTK: beyond `original_length` the base grows with the length
  Yarn,
  Llama3,
  LongRope,  // Phi-3: divisors per frequency, one list up to `original_length`, one beyond
};

/// How positions turn queries and keys. Elements of a head past `size` stay as they are.
/// Source: transformers 5.17, modeling_rope_utils.py, which names the fields.
struct RopeSpec {
  RopeStyle style = RopeStyle::None;
  std::uint32_t size = 0;  // elements of a head that turn: even, at most its size
  double base = 10000;     // rope_theta
  RopeScaling scaling = RopeScaling::None;
  double factor = 1;
  std::uint32_t original_length = 0;  // original_max_position_embeddings
  double low_frequency_factor = 1;    // Llama3
  double high_frequency_factor = 4;   // Llama3
  double beta_fast = 32;              // Yarn
  double beta_slow = 1;               // Yarn
  bool is_truncated = true;           // Yarn: correction bounds are whole numbers
  double attention_factor = 1;        // Yarn, LongRope: sines and cosines are multiplied by it
  /// LongRope: size / 2 divisors each. A GGUF file's `rope_freqs.weight` (Llama 3's scaling, worked
  /// out by its converter) stands in both.
  std::vector<float> short_divisors;
  std::vector<float> long_divisors;
};

/// The angle by which position p turns pair i is p * inverse_frequencies[i].
struct RopeFrequencies {
  std::vector<float> inverse_frequencies;  // size / 2
  float attention_factor = 1;              // of sines and cosines
};

/// The frequencies for a sequence of `length` tokens. Only Dynamic and LongRope depend on the
/// length; for both, every length up to `original_length` gives the same.
///
/// Formulas in the order and in the float32 of transformers' functions, so that angles agree with
/// its own.
/// Source: transformers 5.17, modeling_rope_utils.py, ROPE_INIT_FUNCTIONS; Su et al. 2021 (RoPE),
/// Peng et al. 2023 (YaRN), Ding et al. 2024 (LongRoPE).
RopeFrequencies rope_frequencies(const RopeSpec& rope, std::uint64_t length);

}  // namespace muster
