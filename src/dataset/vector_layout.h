#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace muster {

/// Where the rows lie in a file of vectors: float32 [row_count, dim] from byte `offset` on, a
/// multiple of 4.
struct VectorLayout {
  std::uint64_t row_count = 0;
  std::uint32_t dim = 0;  // at least 1
  std::uint64_t offset = 0;
};

/// How many bytes of a file its head needs at most to be told how long it is.
inline constexpr std::size_t kHeadBegin = 12;

/// How long the head of an npy or safetensors file is, by its first kHeadBegin bytes (or all of a
/// shorter one). Nothing else is checked: it may be more than the file has.
std::uint64_t npy_head_size(std::string_view begin);
std::uint64_t safetensors_head_size(std::string_view begin);

/// Reads the head of an npy file and checks that the rows are all there. Versions 1.0, 2.0 and 3.0.
///
/// head: what the file of `file_size` bytes begins with: as npy_head_size says, or all of it.
///
/// Errors: Corrupt; Unsupported for another dtype than '<f4', Fortran order, or not two dimensions.
/// The messages do not name the file. Source: NEP 1 and numpy.lib.format.
Result<VectorLayout> parse_npy(std::string_view head, std::uint64_t file_size);

/// The same for a safetensors file: the F32 tensor "embeddings", or the only F32 tensor of two
/// dimensions.
///
/// Source: huggingface/safetensors, README, "Format".
Result<VectorLayout> parse_safetensors(std::string_view head, std::uint64_t file_size);

/// What `shape` and the bytes that are there make of a layout.
///
/// Errors: Corrupt when `size` bytes are not exactly the rows; Unsupported without columns, or for
/// rows that do not begin on a multiple of 4.
Result<VectorLayout> checked_layout(std::uint64_t row_count, std::uint64_t dim,
                                    std::uint64_t offset, std::uint64_t size);

}  // namespace muster
