#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sweep/record_table.h"
#include "sweep/sweep_config.h"

namespace muster {

/// Where a sweep's results lie.
struct SweepFiles {
  std::filesystem::path table;   // results/x.csv
  std::filesystem::path folder;  // of a file for each point: results/x.points
};

/// By `reporter.output_file` and `output_dir`: each table has a folder of its own. Threads: pure.
SweepFiles sweep_files(const SweepConfig& config);

/// Makes a folder and those above it, so that files can be put there. An empty path is the folder
/// in which the program runs.
///
/// Errors: those of the system, InvalidArgument (a file of that name, no permission).
Status make_folder(const std::filesystem::path& folder);

/// What is known of a finished point from its file.
struct KeptPoint {
  std::string id;
  bool is_valid = false;
  nlohmann::ordered_json record;
};

/// The record in a point's file, whose other parts are passed over.
///
/// Errors: Corrupt (no result of muster bench, or one without a record). Threads: pure.
Result<KeptPoint> read_kept_point(std::string_view json, std::string_view name);

/// The results of a sweep on disk: a file for each point, `ID.json`, and the table of all. Both are
/// written whole or not at all, the point first, so that a kill, a full disk or a power cut costs
/// nothing that was finished; a row that is missing then is put in from its point's file.
///
/// Threads: not thread-safe.
class PointStore {
 public:
  /// Reads the table. Makes no file and no folder.
  ///
  /// Errors: those of RecordTable::read; InvalidArgument (the table is no regular file, the folder
  /// is a file, or has the points of another table that is there).
  static Result<PointStore> open(SweepFiles files);

  /// Of a point that is there; nullopt: it is not.
  ///
  /// Errors: InvalidArgument (a file of its name that is no such result: it would be written over).
  Result<std::optional<KeptPoint>> find(const std::string& id) const;

  /// Makes the points' folder, notes in it whose it is, and removes what a kill has left
  /// half-written of the table and of points.
  Status begin();

  /// After `begin`: keeps a point, in the place of an earlier one. json: the whole result, with its
  /// record.
  ///
  /// Errors: those of writing; ResourceExhausted (the disk is full).
  Status keep(const std::string& json, const KeptPoint& point);

  /// Puts rows into the table that it has not, or of an earlier measurement than their points'
  /// files.
  Status complete(const std::vector<KeptPoint>& points);

  /// Removes the table and every point in its folder; of a link the file behind it is emptied. What
  /// is no result of muster bench stays.
  Status drop();

  const RecordTable& table() const { return table_; }
  const SweepFiles& files() const { return files_; }

 private:
  PointStore(SweepFiles files, RecordTable table)
      : files_(std::move(files)), table_(std::move(table)) {}

  std::filesystem::path file_of(const std::string& id) const;
  Status write_table() const;

  SweepFiles files_;
  RecordTable table_;
};

}  // namespace muster
