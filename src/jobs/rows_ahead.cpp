#include "jobs/rows_ahead.h"

namespace muster {

bool RowsAhead::take(WindowRecord& record) {
  auto row = file_->find(record.number, record.entry.text);
  if (!row) return false;
  record.entry.token_count = row->token_count;
  record.entry.is_truncated = row->is_truncated;
  record.result.row = std::move(row->values);
  return true;
}

// One that cannot be kept does not keep those before it from counting.
Status RowsAhead::keep(std::uint64_t durable_count, std::span<const WindowRecord* const> waiting) {
  MUSTER_TRY(file_->drop_before(durable_count));
  Status outcome = Done{};
  for (const auto* record : waiting) {
    outcome = put(*record);
    if (!outcome) break;
  }
  const auto synced = file_->sync();
  return outcome ? synced : outcome;
}

Status RowsAhead::put(const WindowRecord& record) {
  if (record.result.row.empty() || file_->has(record.number)) return Done{};
  return file_->put({.record = record.number,
                     .text = record.entry.text,
                     .token_count = record.entry.token_count,
                     .is_truncated = record.entry.is_truncated},
                    record.result.row);
}

}  // namespace muster
