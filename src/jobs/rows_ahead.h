#pragma once

#include <memory>
#include <utility>

#include "dataset/ahead_file.h"
#include "jobs/records_ahead.h"

namespace muster {

/// Rows ahead of their turn, in an AheadFile.
///
/// Threads: not thread-safe; owned by the loop of the run.
class RowsAhead final : public RecordsAhead {
 public:
  explicit RowsAhead(std::unique_ptr<AheadFile> file) : file_(std::move(file)) {}

  bool take(WindowRecord& record) override;
  Status keep(std::uint64_t durable_count, std::span<const WindowRecord* const> waiting) override;
  std::uint64_t durable_count() const override { return file_->durable_count(); }

  /// AheadFile::dim.
  std::uint32_t dim() const { return file_->dim(); }

 private:
  Status put(const WindowRecord& record);

  std::unique_ptr<AheadFile> file_;
};

}  // namespace muster
