#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dataset/byte_source.h"

namespace muster {

/// One row of a CSV. Its buffers are reused from row to row.
struct CsvRow {
  std::vector<std::string> cells;    // contents, empty for a cell that is not wanted
  std::size_t cell_count = 0;        // how many the row has; `cells` may be shorter
  std::uint64_t line = 0;            // 1-based line where the row begins
  bool is_too_long = false;          // contents are cut
  std::optional<std::string> fault;  // the row breaks the format here
};

/// Cuts a stream of bytes into rows: cells may be quoted, a quoted cell may hold separators, line
/// ends and doubled quotes. Blank lines are passed over; a UTF-8 byte order mark at the start is
/// skipped. A quote inside a cell that does not begin with one stands for itself. Memory is bounded
/// by `row_size_max`.
///
/// Threads: not thread-safe.
/// Source: RFC 4180.
class CsvRows {
 public:
  CsvRows(std::unique_ptr<ByteSource> source, char separator, std::uint64_t row_size_max);

  /// The next row into `row`; false at the end.
  Result<bool> next(CsvRow& row);

  /// From the next row on keeps only the cells that are set, and counts the others.
  void keep_only(std::vector<bool> wanted, std::uint64_t row_size_max);

  /// Of the source, for the rows that were given: what waits in the buffer does not count.
  std::uint64_t size_consumed() const {
    return consumed_share(source_->size_consumed(), read_size_, read_size_ - (end_ - position_));
  }

 private:
  // What stands behind a cell.
  enum class After : std::uint8_t { Separator, LineEnd, InputEnd };

  Status skip_byte_order_mark();
  Result<bool> has_byte();
  Status fill();
  Result<After> read_cell(CsvRow& row);
  Result<After> read_plain(CsvRow& row, std::string* cell);
  Result<After> read_quoted(CsvRow& row, std::string* cell);
  Result<After> skip_to_line_end();
  Result<After> pass_line_end();
  std::string* cell_to_fill(CsvRow& row);
  void store(CsvRow& row, std::string_view run, std::string* cell);

  std::unique_ptr<ByteSource> source_;
  const char separator_;
  std::uint64_t row_size_max_;
  std::vector<char> buffer_;
  std::size_t position_ = 0;  // buffer_[position_, end_) is read and not yet looked at
  std::size_t end_ = 0;
  std::uint64_t read_size_ = 0;  // of all that the source gave
  bool is_started_ = false;
  bool is_source_done_ = false;
  std::uint64_t line_ = 1;      // of the byte at position_
  std::uint64_t row_size_ = 0;  // bytes of the row so far, without its line end
  bool has_quotes_ = false;     // the row has a quoted cell: it is not blank
  std::optional<std::vector<bool>> wanted_;
};

}  // namespace muster
