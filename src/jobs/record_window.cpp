// Records in input order while their rows come back in any.

#include "jobs/record_window.h"

#include <utility>

namespace muster {

RecordWindow::RecordWindow(std::size_t record_max, std::uint64_t size_max)
    : record_max_(record_max), size_max_(size_max) {}

bool RecordWindow::has_room() const { return records_.size() < record_max_ && size_ < size_max_; }

ItemKey RecordWindow::push(WindowRecord record) {
  const auto key = next_key();
  record.size = size_of(record);
  size_ += record.size;
  records_.push_back(std::move(record));
  return key;
}

WindowRecord* RecordWindow::find(ItemKey key) {
  if (key < first_key_ || key - first_key_ >= records_.size()) return nullptr;
  return &records_[key - first_key_];
}

WindowRecord* RecordWindow::front_if_done() {
  return !records_.empty() && records_.front().is_done ? &records_.front() : nullptr;
}

Status RecordWindow::visit_done(
    const std::function<Status(ItemKey, const WindowRecord&)>& visit) const {
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (records_[i].is_done) MUSTER_TRY(visit(first_key_ + i, records_[i]));
  }
  return Done{};
}

void RecordWindow::pop_front() {
  size_ -= records_.front().size;
  records_.pop_front();
  ++first_key_;
}

// Known when the record comes in: its text and kept fields, its ids, which the coordinator holds
// meanwhile (a server tells their number later, and holds them itself), and the record itself. Rows
// are bounded by the number of records.
std::uint64_t RecordWindow::size_of(const WindowRecord& record) const {
  return sizeof(WindowRecord) + record.entry.text.size() + record.entry.id.size() +
         record.entry.fields.size() +
         std::uint64_t{record.entry.token_count} * sizeof(std::uint32_t);
}

}  // namespace muster
