#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "spec/model_weights.h"

namespace muster {

/// One of ggml's tensor types: how many elements a block has and how many bytes it takes.
struct GgmlType {
  std::uint32_t id = 0;   // in the file
  std::string_view name;  // "Q4_K"
  std::uint64_t block_elements = 1;
  std::uint64_t block_bytes = 0;
  bool is_floating = false;  // a plain float of 16 bits or more
};

/// nullptr for an id that ggml does not have or has removed.
/// Source: ggml.h and ggml-common.h of llama.cpp 01243c58 (block_* and their static_asserts).
const GgmlType* find_ggml_type(std::uint32_t id);

/// The types of metadata values by their numbers in the file.
enum class GgufValueType : std::uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64,
};
inline constexpr std::uint32_t kGgufValueTypeCount = 13;

/// A list in the metadata. Long ones (a vocabulary) stay in the file: `numbers` holds the elements
/// where they are integers or flags and not more than a model has layers.
struct GgufList {
  std::uint64_t count = 0;
  std::vector<std::int64_t> numbers;
  GgufValueType type = GgufValueType::U8;  // of the elements
  std::uint64_t begin = 0;                 // of the first one: bytes from the start of the file
};

/// A metadata value.
using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string, GgufList>;

struct GgufTensor {
  std::string name;
  const GgmlType* type = nullptr;
  std::vector<std::int64_t> shape;  // ggml's order: the fastest dimension first
  std::uint64_t begin = 0;          // bytes from the start of the file
  std::uint64_t size = 0;           // bytes, padding excluded
};

struct GgufHeader {
  std::uint32_t version = 0;
  std::uint32_t alignment = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;  // in the file's order
};

/// Checks and reads the header of a file of `file_size` bytes whose first bytes are `head`.
///
/// Takes memory in proportion to the header's own bytes at most, whatever its counts say.
/// Errors: Corrupt, with one sentence, for everything that breaks the format: another magic, counts
/// or lengths past the end, a key or tensor twice, a type that is not known, a row that is no whole
/// number of blocks, an offset that is not aligned, tensors that overlap or pass the end;
/// Unsupported for version 1, a version above 3 and big-endian files.
/// Source: docs/gguf.md of ggml 2026-05, gguf.cpp of llama.cpp 067d44f6.
Result<GgufHeader> parse_gguf_header(std::span<const std::byte> head, std::uint64_t file_size);

/// Describes the model of a GGUF file; of a split one (`name-00001-of-00003.gguf`, any of them) all
/// files are read.
///
/// The shape comes from the keys of `general.architecture`; units are named as llama.cpp names
/// tensors: `token_embd`, `blk.3`, `output`.
/// Errors: as `parse_gguf_header`; NotFound (a file of the split, by name), Corrupt (files of two
/// models, a block without a tensor, a missing or impossible key, by name).
Result<ModelDescription> describe_gguf(const std::filesystem::path& path);

/// The shape that the metadata of one architecture states.
///
/// Errors: Corrupt (no architecture; a missing or impossible key, by name; a tensor of a layer that
/// block_count does not count).
Result<ModelShape> parse_gguf_shape(const GgufHeader& header);

}  // namespace muster
