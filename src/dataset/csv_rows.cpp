// RFC 4180 over a buffer that is refilled as it is used up: a row may be longer than the buffer,
// and a quoted cell may hold separators and line ends. Only wanted cells are copied; the others are
// counted. No row grows beyond its limit in memory: a longer one is read to its end, so that the
// next one is found, and marked. Source: RFC 4180, section 2.

#include "dataset/csv_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster {
namespace {

constexpr std::size_t kChunkSize = 256 * 1024;  // of one read; stays in the second-level cache
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

CsvRows::CsvRows(std::unique_ptr<ByteSource> source, char separator, std::uint64_t row_size_max)
    : source_(std::move(source)),
      separator_(separator),
      row_size_max_(row_size_max),
      buffer_(kChunkSize) {}

void CsvRows::keep_only(std::vector<bool> wanted, std::uint64_t row_size_max) {
  wanted_ = std::move(wanted);
  row_size_max_ = row_size_max;
}

Result<bool> CsvRows::next(CsvRow& row) {
  if (!std::exchange(is_started_, true)) {
    MUSTER_TRY(skip_byte_order_mark());
  }
  for (;;) {
    if (!MUSTER_TRY(has_byte())) {
      return false;
    }
    for (auto& cell : row.cells) cell.clear();
    row.cell_count = 0;
    row.line = line_;
    row.is_too_long = false;
    row.fault.reset();
    row_size_ = 0;
    has_quotes_ = false;
    while (MUSTER_TRY(read_cell(row)) == After::Separator) {
    }
    // An empty line is no row, but a row of one cell that is empty in quotes is.
    if (row_size_ > 0 || has_quotes_) {
      return true;
    }
  }
}

Status CsvRows::skip_byte_order_mark() {
  while (end_ < kByteOrderMark.size() && !is_source_done_) {
    MUSTER_TRY(fill());
  }
  if (std::string_view(buffer_.data(), end_).starts_with(kByteOrderMark)) {
    position_ = kByteOrderMark.size();
  }
  return Done{};
}

Result<bool> CsvRows::has_byte() {
  if (position_ == end_ && !is_source_done_) {
    position_ = end_ = 0;
    MUSTER_TRY(fill());
  }
  return position_ < end_;
}

Status CsvRows::fill() {
  const auto count = MUSTER_TRY(source_->read(std::span(buffer_).subspan(end_)));
  is_source_done_ = count == 0;
  end_ += count;
  read_size_ += count;
  return Done{};
}

Result<CsvRows::After> CsvRows::read_cell(CsvRow& row) {
  std::string* cell = cell_to_fill(row);
  ++row.cell_count;
  const bool is_quoted = MUSTER_TRY(has_byte()) && buffer_[position_] == '"';
  const After after =
      is_quoted ? MUSTER_TRY(read_quoted(row, cell)) : MUSTER_TRY(read_plain(row, cell));
  if (after == After::Separator) {
    ++row_size_;
  }
  return after;
}

// Everything up to the separator or the line end.
Result<CsvRows::After> CsvRows::read_plain(CsvRow& row, std::string* cell) {
  bool ends_in_return = false;
  while (MUSTER_TRY(has_byte())) {
    const char* begin = buffer_.data() + position_;
    const char* end = buffer_.data() + end_;
    const char* stop =
        std::find_if(begin, end, [this](char byte) { return byte == separator_ || byte == '\n'; });
    // A "\r" may be the last byte of one refill and its "\n" the first of the next: it is
    // remembered.
    const std::string_view run(begin, static_cast<std::size_t>(stop - begin));
    store(row, run, cell);
    ends_in_return = run.empty() ? ends_in_return : run.back() == '\r';
    position_ += run.size();
    if (stop == end) continue;
    ++position_;
    if (*stop == separator_) {
      return After::Separator;
    }
    ++line_;
    if (ends_in_return) {
      --row_size_;
      if (cell != nullptr && cell->ends_with('\r')) cell->pop_back();
    }
    return After::LineEnd;
  }
  return After::InputEnd;
}

// Everything between quotes, and then what must stand behind them.
Result<CsvRows::After> CsvRows::read_quoted(CsvRow& row, std::string* cell) {
  const std::uint64_t first_line = line_;
  has_quotes_ = true;
  ++position_;
  for (;;) {
    if (!MUSTER_TRY(has_byte())) {
      row.fault = fmt::format("a quote is never closed: cell {}, opened on line {}", row.cell_count,
                              first_line);
      return After::InputEnd;
    }
    const char* begin = buffer_.data() + position_;
    const auto* quote = static_cast<const char*>(std::memchr(begin, '"', end_ - position_));
    const char* end = quote != nullptr ? quote : buffer_.data() + end_;
    const std::string_view run(begin, static_cast<std::size_t>(end - begin));
    store(row, run, cell);
    line_ += static_cast<std::uint64_t>(std::count(run.begin(), run.end(), '\n'));
    position_ += run.size();
    if (quote == nullptr) continue;
    ++position_;
    // Two quotes within quotes are one quote of the text; a single one ends the cell.
    if (MUSTER_TRY(has_byte()) && buffer_[position_] == '"') {
      ++position_;
      store(row, "\"", cell);
      continue;
    }
    if (position_ == end_) {
      return After::InputEnd;
    }
    if (buffer_[position_] == separator_) {
      ++position_;
      return After::Separator;
    }
    if (buffer_[position_] == '\n' || buffer_[position_] == '\r') {
      const auto after = MUSTER_TRY(pass_line_end());
      if (after != After::Separator) return after;
    }
    row.fault = fmt::format("text behind a closing quote: cell {}", row.cell_count);
    return skip_to_line_end();
  }
}

// Passes "\n", "\r\n" or "\r" at the end of the input; Separator stands for none of them.
Result<CsvRows::After> CsvRows::pass_line_end() {
  if (buffer_[position_] == '\r') {
    ++position_;
    if (!MUSTER_TRY(has_byte())) {
      return After::InputEnd;
    }
  }
  if (buffer_[position_] != '\n') {
    return After::Separator;
  }
  ++position_;
  ++line_;
  return After::LineEnd;
}

Result<CsvRows::After> CsvRows::skip_to_line_end() {
  while (MUSTER_TRY(has_byte())) {
    const char* begin = buffer_.data() + position_;
    const auto* stop = static_cast<const char*>(std::memchr(begin, '\n', end_ - position_));
    if (stop != nullptr) {
      position_ += static_cast<std::size_t>(stop - begin) + 1;
      ++line_;
      return After::LineEnd;
    }
    position_ = end_;
  }
  return After::InputEnd;
}

std::string* CsvRows::cell_to_fill(CsvRow& row) {
  const std::size_t column = row.cell_count;
  if (wanted_ && (column >= wanted_->size() || !(*wanted_)[column])) {
    return nullptr;
  }
  // A header of nothing but separators stays bounded: what is too long is not kept either.
  if (row.is_too_long) {
    return nullptr;
  }
  if (row.cells.size() <= column) {
    row.cells.resize(column + 1);
  }
  return &row.cells[column];
}

void CsvRows::store(CsvRow& row, std::string_view run, std::string* cell) {
  row_size_ += run.size();
  if (row_size_ > row_size_max_) {
    row.is_too_long = true;
  } else if (cell != nullptr) {
    cell->append(run);
  }
}

}  // namespace muster
