#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace muster {

/// Bytes of the head of a npy or safetensors file of ours, the same for any number of rows. Source:
/// npy 1.0 wants a multiple of 64; 128 is the first that holds the longest shape in both formats.
inline constexpr std::size_t kVectorHeaderSize = 128;

/// The head of a npy 1.0 file of float32 [row_count, dim] in C order, padded with spaces.
std::string npy_header(std::uint64_t row_count, std::uint32_t dim);

/// The head of a safetensors file with one tensor "embeddings", F32 [row_count, dim]: the length,
/// and the JSON padded with spaces.
std::string safetensors_header(std::uint64_t row_count, std::uint32_t dim);

}  // namespace muster
