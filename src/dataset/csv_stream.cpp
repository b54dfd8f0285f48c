// The records of CSV and TSV: a row each, under a header line that names the columns. The header
// decides once which columns are looked at; what is wrong with it ends the input, while what is
// wrong with a row is a fault of that record alone.

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "dataset/csv_rows.h"
#include "dataset/json_fields.h"
#include "dataset/json_text.h"
#include "dataset/record_stream.h"

namespace muster {
namespace {

constexpr std::uint64_t kHeaderSizeMax = 1 << 20;  // 1 MiB of column names is no header

class CsvStream final : public RecordStream {
 public:
  CsvStream(std::unique_ptr<ByteSource> source, RecordStreamOptions options, char separator)
      : options_(std::move(options)),
        separator_(separator),
        rows_(std::move(source), separator, kHeaderSizeMax) {}

  Result<bool> next(TextRecord& record) override {
    if (column_count_ == 0 && !MUSTER_TRY(read_header())) {
      return false;
    }
    if (!MUSTER_TRY(rows_.next(row_))) {
      return false;
    }
    record.line = row_.line;
    record.fields.clear();
    record.fault.reset();
    if (auto fault = fault_of_row()) {
      set_fault(record, *std::move(fault));
      return true;
    }
    for (std::size_t i = 0; i < kept_columns_.size(); ++i) keep(i, record.fields);
    // Swapped, not moved: both keep their buffers.
    record.text.swap(row_.cells[text_column_]);
    record.id.clear();
    if (id_column_) {
      record.id = *id_column_ == text_column_ ? record.text : row_.cells[*id_column_];
    }
    return true;
  }

  std::uint64_t size_consumed() const override { return rows_.size_consumed(); }

  // A header that lacks a column has ended the input.
  std::vector<KeptName> kept_names() const override {
    return {options_.keep.size(), KeptName{.is_met = true}};
  }

 private:
  // False for an input without any row.
  Result<bool> read_header() {
    if (!MUSTER_TRY(rows_.next(row_))) {
      return false;
    }
    if (row_.is_too_long) {
      return header_error(too_long_message(kHeaderSizeMax));
    }
    if (row_.fault) {
      return header_error(*row_.fault);
    }
    text_column_ = MUSTER_TRY(column_of(options_.field, "--field"));
    if (options_.id_field) {
      id_column_ = MUSTER_TRY(column_of(*options_.id_field, "--id-field"));
    }
    for (const auto& name : options_.keep) {
      kept_columns_.push_back(MUSTER_TRY(column_of(name, "--keep")));
    }
    want_columns();
    return true;
  }

  // The columns whose cells are looked at; the others are counted alone.
  void want_columns() {
    column_count_ = row_.cell_count;
    std::vector<std::pair<std::size_t, std::string>> named{{text_column_, options_.field}};
    if (id_column_) named.emplace_back(*id_column_, *options_.id_field);
    for (std::size_t i = 0; i < kept_columns_.size(); ++i) {
      named.emplace_back(kept_columns_[i], options_.keep[i]);
    }
    std::vector<bool> wanted;
    for (auto& [column, name] : named) {
      wanted.resize(std::max(wanted.size(), column + 1));
      if (!wanted[column]) read_columns_.emplace_back(column, std::move(name));
      wanted[column] = true;
    }
    row_.cells.assign(wanted.size(), {});
    rows_.keep_only(std::move(wanted), options_.record_size_max);
  }

  // A cell is text, whatever stands in it; an empty one holds no value.
  void keep(std::size_t index, std::string& fields) {
    const auto& cell = row_.cells[kept_columns_[index]];
    if (cell.empty()) return;
    value_.clear();
    append_json_string(cell, value_);
    append_kept_field(options_.keep[index], value_, fields);
  }

  Result<std::size_t> column_of(const std::string& name, std::string_view flag) const {
    const auto& names = row_.cells;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      if (auto other = other_separator()) return header_error(*other);
      return header_error(missing_name_message("column", name, names, flag));
    }
    if (std::find(found + 1, names.end(), name) != names.end()) {
      return header_error(fmt::format("two columns are named \"{}\"", name));
    }
    return static_cast<std::size_t>(found - names.begin());
  }

  // A header of one column whose name holds what parts columns elsewhere.
  std::optional<std::string> other_separator() const {
    if (row_.cell_count != 1) return std::nullopt;
    const auto& name = row_.cells.front();
    if (separator_ != '\t' && name.find('\t') != std::string::npos) {
      return "its columns are parted by tabs: --format tsv reads them";
    }
    if (name.find(';') == std::string::npos) return std::nullopt;
    return "its columns are parted by semicolons, which are not read: part them by commas (or by "
           "tabs, for --format tsv)";
  }

  Error header_error(std::string_view why) const {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}:{}: {}", options_.input, row_.line, why)};
  }

  std::optional<std::string> fault_of_row() const {
    if (row_.fault) {
      return row_.fault;
    }
    if (row_.is_too_long) {
      return too_long_message(options_.record_size_max);
    }
    // More cells than columns are a fault too: a comma in a text that was not quoted would cut it.
    if (row_.cell_count != column_count_) {
      return fmt::format("a row of {} cells where the header has {}", row_.cell_count,
                         column_count_);
    }
    for (const auto& [column, name] : read_columns_) {
      if (const auto fault = utf8_fault(row_.cells[column])) {
        return fmt::format("column \"{}\": {}", name, *fault);
      }
    }
    return std::nullopt;
  }

  RecordStreamOptions options_;
  const char separator_;
  CsvRows rows_;
  CsvRow row_;
  std::size_t column_count_ = 0;  // of the header; 0 until it is read
  std::size_t text_column_ = 0;
  std::optional<std::size_t> id_column_;
  std::vector<std::size_t> kept_columns_;                          // of options_.keep
  std::vector<std::pair<std::size_t, std::string>> read_columns_;  // each once, with its name
  std::string value_;                                              // of a kept field, as JSON
};

}  // namespace

std::unique_ptr<RecordStream> make_csv_stream(std::unique_ptr<ByteSource> source,
                                              RecordStreamOptions options, char separator) {
  return std::make_unique<CsvStream>(std::move(source), std::move(options), separator);
}

}  // namespace muster
