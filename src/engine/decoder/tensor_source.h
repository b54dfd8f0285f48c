#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "modelfile/gguf_file.h"
#include "modelfile/safetensors.h"

namespace muster::engine {

/// A matrix [rows, columns] of a weight file, or a vector as one row.
struct SourceMatrix {
  const GgmlType* type = nullptr;
  std::size_t row_count = 0;
  std::size_t column_count = 0;
  std::span<const std::byte> data;  // within the file
  /// Of a tensor stored [columns, rows] (GPT-2's from Hugging Face): read by column. Plain floats
  /// only.
  bool is_transposed = false;

  /// Bytes of one row; of no use for a transposed one.
  std::size_t row_bytes() const { return column_count / type->block_elements * type->block_bytes; }

  /// Shapes: out [column_count].
  void read_row(std::size_t row, std::span<float> out) const;
};

/// The tensors of a model as its files have them: a GGUF file or a folder of safetensors, mapped.
///
/// Threads: immutable.
class TensorSource {
 public:
  /// Errors: those of `GgufFile::open` and `ModelWeights::open`.
  static Result<TensorSource> open(const std::filesystem::path& source);

  /// Errors: Corrupt (no such tensor, another shape; with the name and both shapes), Unsupported (a
  /// type that is not read, by name).
  Result<SourceMatrix> matrix(std::string_view name, std::size_t rows, std::size_t columns) const;

  /// The same of a tensor stored the other way round.
  Result<SourceMatrix> transposed_matrix(std::string_view name, std::size_t rows,
                                         std::size_t columns) const;

  /// The matrices of a tensor [count, rows, columns], in order. Errors: as `matrix`.
  Result<std::vector<SourceMatrix>> stack(std::string_view name, std::size_t count,
                                          std::size_t rows, std::size_t columns) const;

  /// A vector as floats. Errors: as `matrix`.
  Result<std::vector<float>> vector(std::string_view name, std::size_t size) const;

  bool has(std::string_view name) const;

  /// Lets the system take back the memory of a matrix's pages; they are read again when touched.
  static void let_go(const SourceMatrix& matrix);

 private:
  struct Found {
    const GgmlType* type = nullptr;
    const std::vector<std::int64_t>* shape = nullptr;
    std::span<const std::byte> data;
  };
  explicit TensorSource(std::variant<GgufFile, ModelWeights> files) : files_(std::move(files)) {}
  Result<Found> find(std::string_view name) const;

  std::variant<GgufFile, ModelWeights> files_;
};

}  // namespace muster::engine
