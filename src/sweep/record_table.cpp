// The table is kept whole in memory and written whole: a row that needs a new column then changes
// the header and no other row. ai_energy_benchmarks wrote its header once and each row by its own
// keys, so that a run with more GPUs shifted its cells under the columns of another.
#include "sweep/record_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "sweep/device_stats.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kKeyColumn = "point";
constexpr std::string_view kHead = "point,timestamp,valid,";  // by which a table is known
constexpr std::string_view kGpuHead = "gpu_stats_gpu_";
constexpr std::uint32_t kGpusMost = 1'024;  // that get a block; machines have some dozens

std::string scalar_text(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  return value.dump();
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as a record
void flatten(const Json& value, const std::string& name,
             std::vector<std::pair<std::string, std::string>>& cells) {
  if (value.is_object()) {
    for (const auto& [key, one] : value.items()) {
      flatten(one, name.empty() ? key : name + "_" + key, cells);
    }
    return;
  }
  std::string text;
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      text += (i > 0 ? "," : "") + scalar_text(value[i]);
    }
  } else {
    text = scalar_text(value);
  }
  cells.emplace_back(name, std::move(text));
}

// The number of the GPU whose column this is; nullopt: it is of none.
std::optional<std::uint32_t> gpu_of(std::string_view column) {
  if (!column.starts_with(kGpuHead)) return std::nullopt;
  const auto rest = column.substr(kGpuHead.size());
  std::uint32_t number = 0;
  const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (read.ec != std::errc() || number >= kGpusMost) return std::nullopt;
  return number;
}

void append_cell(std::string& line, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    line += text;
    return;
  }
  line += '"';
  for (const char c : text) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

// Cuts a text into rows of cells; a quoted cell may hold commas, quotes and line ends.
class CellReader {
 public:
  CellReader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  bool is_at_end() const { return at_ >= text_.size(); }

  Result<std::vector<std::string>> next_row() {
    std::vector<std::string> cells;
    row_line_ = line_;
    for (;;) {
      cells.push_back(MUSTER_TRY(next_cell()));
      if (is_at_end()) return cells;
      if (text_[at_++] == ',') continue;
      ++line_;
      return cells;
    }
  }

  Error broken(std::string_view what) const {
    return corrupt_error(
        fmt::format("{}:{}: {}; remove the table: --resume writes it anew from the points' files",
                    name_, row_line_, what));
  }

 private:
  // Stops at the comma or line end behind it.
  Result<std::string> next_cell() {
    std::string cell;
    if (!is_at_end() && text_[at_] == '"') {
      ++at_;
      for (;;) {
        if (is_at_end()) return broken("a quote does not end");
        const char c = text_[at_++];
        if (c == '"' && (is_at_end() || text_[at_] != '"')) break;
        if (c == '"') ++at_;
        if (c == '\n') ++line_;
        cell += c;
      }
    }
    const auto end = std::min(text_.find_first_of(",\n", at_), text_.size());
    auto rest = text_.substr(at_, end - at_);
    if (rest.ends_with('\r')) rest.remove_suffix(1);  // of a spreadsheet's line end
    at_ = end;
    return cell += rest;
  }

  std::string_view text_;
  std::string_view name_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t row_line_ = 1;  // where the row begins
};

}  // namespace

std::vector<std::pair<std::string, std::string>> record_cells(const Json& record) {
  std::vector<std::pair<std::string, std::string>> cells;
  flatten(record, "", cells);
  return cells;
}

Result<RecordTable> RecordTable::read(std::string_view text, std::string_view name) {
  RecordTable table;
  if (text.empty()) return table;
  if (!text.starts_with(kHead)) {
    return invalid_error(fmt::format(
        "{}: that is no table of muster bench run, and it would be overwritten: remove it, or name "
        "another file",
        name));
  }
  CellReader reader(text, name);
  table.columns_ = MUSTER_TRY(reader.next_row());
  if (std::set(table.columns_.begin(), table.columns_.end()).size() != table.columns_.size()) {
    return reader.broken("a column stands twice");
  }
  while (!reader.is_at_end()) {
    const auto cells = MUSTER_TRY(reader.next_row());
    if (cells.size() == 1 && cells.front().empty()) continue;  // a blank line
    if (cells.size() != table.columns_.size()) {
      return reader.broken(fmt::format("a row has {} cells, and the header {}", cells.size(),
                                       table.columns_.size()));
    }
    Row row;
    for (std::size_t i = 0; i < cells.size(); ++i) row[table.columns_[i]] = cells[i];
    table.rows_.push_back(std::move(row));
  }
  return table;
}

// The blocks of GPUs that the row has not, but whose numbers are below one that it has, too.
void RecordTable::add_columns(const Row& row) {
  const auto add = [this](const std::string& column) {
    if (std::ranges::find(columns_, column) == columns_.end()) columns_.push_back(column);
  };
  std::optional<std::uint32_t> last;
  for (const auto& [column, text] : row) {
    if (const auto gpu = gpu_of(column)) last = std::max(last.value_or(0), *gpu);
  }
  for (std::uint32_t gpu = 0; last && gpu <= *last; ++gpu) {
    for (const auto& key : gpu_stat_keys()) add(fmt::format("{}{}_{}", kGpuHead, gpu, key));
  }
  for (const auto& [column, text] : row) add(column);  // of a slice
}

void RecordTable::put(const Json& record) {
  Row row;
  const auto cells = record_cells(record);
  for (const auto& [column, text] : cells) {
    row[column] = text;
    // What is of no GPU comes in the record's own order.
    const bool is_new = std::ranges::find(columns_, column) == columns_.end();
    if (is_new && !gpu_of(column)) columns_.push_back(column);
  }
  add_columns(row);
  const auto same = std::ranges::find_if(rows_, [&](const Row& other) {
    const auto found = other.find(kKeyColumn);
    return found != other.end() && found->second == row[std::string(kKeyColumn)];
  });
  if (same == rows_.end()) {
    rows_.push_back(std::move(row));
  } else {
    *same = std::move(row);
  }
}

// By when it was measured and what came of it. The other cells may have been changed by whoever
// looks at the table, and there may be columns of theirs.
bool RecordTable::is_up_to_date(const Json& record) const {
  std::map<std::string, std::string> wanted;
  for (const auto* column : {"point", "timestamp", "valid"}) {
    const auto found = record.find(column);
    if (found != record.end()) wanted[column] = scalar_text(*found);
  }
  return std::ranges::any_of(rows_, [&](const Row& row) {
    return std::ranges::all_of(wanted, [&](const auto& cell) {
      const auto found = row.find(cell.first);
      return found != row.end() && found->second == cell.second;
    });
  });
}

std::vector<std::string> RecordTable::points() const {
  std::vector<std::string> all;
  for (const auto& row : rows_) {
    const auto found = row.find(kKeyColumn);
    if (found != row.end()) all.push_back(found->second);
  }
  return all;
}

std::string RecordTable::cell(std::size_t row, std::string_view column) const {
  if (row >= rows_.size()) return {};
  const auto found = rows_[row].find(column);
  return found == rows_[row].end() ? std::string() : found->second;
}

std::string RecordTable::text() const {
  std::string all;
  const auto add_line = [&](const auto& cell_of) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) all += ',';
      append_cell(all, cell_of(columns_[i]));
    }
    all += '\n';
  };
  if (columns_.empty()) return all;
  add_line([](const std::string& column) -> std::string_view { return column; });
  for (const auto& row : rows_) {
    add_line([&row](const std::string& column) -> std::string_view {
      const auto found = row.find(column);
      return found == row.end() ? std::string_view() : std::string_view(found->second);
    });
  }
  return all;
}

}  // namespace muster
