#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace muster {

/// Element types of the safetensors format. Source: safetensors 0.8, `Dtype` in tensor.rs.
enum class TensorType : std::uint8_t {
  Bool,
  F4,  // two elements a byte
  F6E2M3,
  F6E3M2,
  U8,
  I8,
  F8E4M3,
  F8E5M2,
  F8E8M0,
  F8E4M3Fnuz,
  F8E5M2Fnuz,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64
};

/// The name in a header: "BF16", "F8_E4M3".
std::string_view tensor_type_name(TensorType type);

/// Whether it is a float of 16 bits or more: what a load converts to another dtype.
bool is_plain_float(TensorType type);

/// One tensor inside a mapped file; `data` is row-major, little-endian, and lives as long as the
/// file.
struct TensorView {
  TensorType type = TensorType::F32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};

/// The parsed header of a safetensors file: where each tensor's bytes are, relative to the file.
struct SafetensorsHeader {
  struct Entry {
    TensorType type = TensorType::F32;
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0;  // bytes from the start of the file
    std::uint64_t size = 0;   // bytes
  };
  std::map<std::string, Entry, std::less<>> tensors;
  std::map<std::string, std::string> metadata;  // `__metadata__`
};

/// Checks and reads the header of a file of `file_size` bytes whose first bytes are `head` (the
/// whole file, or at least 8 bytes plus the header).
///
/// Errors: Corrupt, with one sentence, for everything that breaks the format: a header length past
/// the end, broken JSON, an unknown dtype, offsets that overlap, leave holes, overflow or pass the
/// end, a shape whose product is not the size. Source: the safetensors format description, version
/// 0.8 (README "Format").
Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> head,
                                                   std::uint64_t file_size);

/// All weights of a model folder: `model.safetensors`, or the shards of
/// `model.safetensors.index.json`.
///
/// Threads: immutable after open.
class ModelWeights {
 public:
  /// Errors: NotFound (no weights; names the PyTorch `.bin` when only that is there), Corrupt.
  static Result<ModelWeights> open(const std::filesystem::path& model_folder);

  /// nullptr when there is no tensor of that name.
  const TensorView* find(std::string_view name) const;

  const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }

 private:
  std::vector<MappedFile> files_;
  std::map<std::string, TensorView, std::less<>> tensors_;
};

}  // namespace muster
