#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace muster {

/// A finished file of vectors, mapped (npy, safetensors) or read (jsonl).
///
/// Threads: immutable.
class VectorFile {
 public:
  /// Errors: NotFound; Corrupt, naming what is wrong; Unsupported (another dtype, Fortran order,
  /// not 2-D).
  static Result<std::unique_ptr<VectorFile>> open(const std::filesystem::path& path);

  virtual ~VectorFile() = default;

  virtual std::uint64_t row_count() const = 0;
  virtual std::uint32_t dim() const = 0;

  /// Shapes: [dim] float32. row: below row_count().
  virtual std::span<const float> row(std::uint64_t row) const = 0;
};

/// Where the index of OUT lies: "x.npy" has "x.npy.index.jsonl" beside it.
std::filesystem::path index_path_of(const std::filesystem::path& out);

/// One line of the index. A bad record has no row.
struct IndexEntry {
  std::optional<std::uint64_t> row;
  std::string id;
  std::string input;  // the input's name as given
  std::uint64_t line = 0;
  std::uint32_t token_count = 0;
  bool is_truncated = false;
  std::string text;
  std::string reason;  // why there is no row
};

/// Appends the entry as a JSON line, in the order row, id, input, line, tokens, truncated, text; a
/// bad record has `"row":null` and `reason`, and no tokens, truncated or text. `id` is left out
/// when empty.
void append_index_line(const IndexEntry& entry, std::string& out);

/// Reads the entries of the wanted rows; one pass over the index, whatever the number of rows.
///
/// Errors: NotFound, Corrupt with the line; NotFound for a row that the index lacks.
Result<std::vector<IndexEntry>> read_index_entries(const std::filesystem::path& index,
                                                   std::span<const std::uint64_t> rows);

}  // namespace muster
