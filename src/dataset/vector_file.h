#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

  /// Shapes: [dim] float32. row: below row_count(). Where the file is mapped and another process
  /// may cut it shorter, rows are read in `read_rows`.
  virtual std::span<const float> row(std::uint64_t row) const = 0;

  /// Runs `work`, which reads rows. What holds for the work of read_mapped holds for it.
  ///
  /// Errors: Corrupt, naming the file, where a row is not there any more.
  virtual Status read_rows(const std::function<void()>& work) const = 0;
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
  std::string fields;  // that were kept: a JSON object; empty without any
  std::string text;
  std::string reason;  // why there is no row
};

/// Appends the entry as a JSON line, in the order row, id, input, line, tokens, truncated, fields,
/// text; a bad record has `"row":null` and `reason`, and no tokens, truncated, fields or text. `id`
/// and `fields` are left out when empty.
void append_index_line(const IndexEntry& entry, std::string& out);

/// The entry of a line whose record has a row; nullopt for anything else.
///
/// line: 64 bytes behind it can be read.
std::optional<IndexEntry> parse_index_line(std::string_view line);

/// The row that a line begins with, without a look at the rest of it; nullopt for a bad record and
/// for what is no line of an index.
std::optional<std::uint64_t> row_of_index_line(std::string_view line);

/// Whether a line begins as that of a bad record does.
bool is_index_line_of_bad_record(std::string_view line);

/// Reads the entries of the wanted rows; one pass over the index, whatever the number of rows.
///
/// Errors: NotFound, Corrupt with the line; NotFound for a row that the index lacks.
Result<std::vector<IndexEntry>> read_index_entries(const std::filesystem::path& index,
                                                   std::span<const std::uint64_t> rows);

}  // namespace muster
