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
#include "modelfile/gguf.h"
#include "spec/decoder_spec.h"
#include "spec/gguf_tokens.h"

namespace muster {

/// One tensor of a mapped GGUF file.
struct GgufView {
  const GgmlType* type = nullptr;
  /// The slowest dimension first, as safetensors and torch have it (a matrix is [out, in]); ggml's
  /// order reversed. Bytes are row-major over this shape: a row of the last dimension is a whole
  /// number of blocks.
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;  // within the file
};

/// A GGUF file, or all files of a split one, mapped: its metadata and its tensors as they are.
///
/// Nothing is read ahead: a tensor's pages are read when its bytes are touched.
/// Threads: immutable.
class GgufFile {
 public:
  /// Errors: those of `parse_gguf_header` and of a split's files (`describe_gguf`).
  static Result<GgufFile> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const GgufHeader& header() const { return header_; }  // of a split: all tensors
  /// The bytes that the metadata was read from: of a split those of its first file.
  std::span<const std::byte> metadata_bytes() const { return files_.front().bytes(); }

  /// nullptr when there is no tensor of that name.
  const GgufView* find(std::string_view name) const;
  const std::map<std::string, GgufView, std::less<>>& tensors() const { return tensors_; }

  /// The tokenizer's part of the metadata. The views in it point into this file.
  ///
  /// Errors: NotFound (the file has none), Corrupt (a key of another type, lists of other lengths
  /// than the tokens, an id beyond them, by name).
  Result<GgufTokens> tokens() const;

  /// What of the file a decoder computes with.
  ///
  /// Errors: Unsupported (an architecture that cannot be computed, with the known ones; a kind of
  /// scaling or an option that is not implemented, by name), Corrupt (a missing or impossible key).
  Result<DecoderSpec> decoder() const;

 private:
  std::filesystem::path path_;
  std::vector<MappedFile> files_;
  GgufHeader header_;
  std::map<std::string, GgufView, std::less<>> tensors_;
};

/// All files of a split, by the name of any of them (`name-00001-of-00003.gguf`); of another name
/// the file alone. They are not looked for.
std::vector<std::filesystem::path> gguf_split_files(const std::filesystem::path& path);

/// `GgufFile::tokens` and `GgufFile::decoder` without the file's name in the message. `file`: the
/// bytes that the header was read from.
Result<GgufTokens> read_gguf_tokens(const GgufHeader& header, std::span<const std::byte> file);
Result<DecoderSpec> read_gguf_decoder(const GgufFile& file);

}  // namespace muster
