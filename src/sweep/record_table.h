#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster {

/// Records as a table, a row for each point. Names of nested keys are joined by "_", as
/// ai_energy_benchmarks has them: `gpu_stats_gpu_0_utilization_percent`, `config_device_ids`.
///
/// Columns are stable: those of every record come first, in one order; then a block of the same
/// columns for each GPU, gpu_0 first, as many as the row with most has. So files of different
/// machines agree on the places of all that they share, and a row with more GPUs adds columns
/// behind the last. What a row has not is empty. A file keeps the order of the columns it has.
///
/// Threads: not thread-safe.
class RecordTable {
 public:
  /// Reads a table of an earlier run; an empty text is one without rows.
  ///
  /// name: for messages. Errors: InvalidArgument (its first line is not that of such a table),
  /// Corrupt (a row of another width, a quote that does not end, a column twice).
  /// Source: RFC 4180.
  static Result<RecordTable> read(std::string_view text, std::string_view name);

  /// Adds the row of a record, or puts it in the place of the one with the same `point`.
  void put(const nlohmann::ordered_json& record);

  /// Whether the row of the record's point is there, and of the same measurement.
  bool is_up_to_date(const nlohmann::ordered_json& record) const;

  std::vector<std::string> points() const;
  const std::vector<std::string>& columns() const { return columns_; }
  std::size_t row_count() const { return rows_.size(); }
  /// Empty where there is no such row or column.
  std::string cell(std::size_t row, std::string_view column) const;

  /// The whole table; lines end in "\n". Source: RFC 4180.
  std::string text() const;

 private:
  using Row = std::map<std::string, std::string, std::less<>>;

  void add_columns(const Row& row);

  std::vector<std::string> columns_;
  std::vector<Row> rows_;
};

/// The cells of a record by column, in its order: numbers as JSON writes them, lists with commas
/// between, null as nothing. Threads: pure.
std::vector<std::pair<std::string, std::string>> record_cells(const nlohmann::ordered_json& record);

}  // namespace muster
