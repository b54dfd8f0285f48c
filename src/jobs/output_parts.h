#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "dataset/output_record.h"
#include "dataset/run_journal.h"
#include "dataset/vector_writer.h"
#include "jobs/record_window.h"
#include "jobs/run_files.h"

namespace muster {

/// The unfinished files of a run while they grow, under their part names.
///
/// Threads: not thread-safe; one at a time, but for `make_durable`.
class OutputParts {
 public:
  virtual ~OutputParts() = default;

  /// Appends a record; buffered. Sets `entry.row` to `row` where it has a result.
  virtual Status append(WindowRecord& record, std::uint64_t row) = 0;

  /// Writes the buffers, and sets where the files end and the hashes of what they gained since the
  /// call before.
  virtual Status mark(RunStep& step) = 0;

  /// Makes what was written so far durable (fdatasync). Threads: may run beside all but `finish`.
  virtual Status make_durable() const = 0;

  /// Makes them whole and durable, and sets sizes and hashes of them.
  virtual Status finish(OutputRecord& record) = 0;
};

/// Opens the parts: new ones, or those that end with a step, which are cut there.
using OpenParts = std::function<Result<std::unique_ptr<OutputParts>>(const RunStep& step)>;

/// How the rows of a run are written.
struct RowShape {
  VectorFormat format = VectorFormat::Npy;
  std::uint32_t dim = 0;
  bool has_objects = false;  // Jsonl: a line is an object with id and kept fields, too
};

/// Vectors, and the index beside them.
OpenParts vector_parts(const RunFiles& files, const RowShape& shape);

/// A line for each reply (reply_line.h).
OpenParts reply_parts(const RunFiles& files);

}  // namespace muster
