// Records in input order while their results come back in any.

#include "jobs/record_window.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster {
namespace {

std::uint64_t size_of_ids(std::uint32_t token_count) {
  return std::uint64_t{token_count} * sizeof(std::uint32_t);
}

}  // namespace

RecordWindow::RecordWindow(std::size_t record_max, std::size_t record_most, std::uint64_t size_max)
    : record_least_(record_max),
      record_most_(std::max(record_max, record_most)),
      record_max_(record_max),
      size_max_(size_max) {}

bool RecordWindow::has_room() const { return records_.size() < record_max_ && size_ < size_max_; }

ItemKey RecordWindow::push(RecordPtr record) {
  const auto key = next_key();
  record->key = key;
  record->size = size_of(*record);
  size_ += record->size;
  records_.push_back(std::move(record));
  return key;
}

void RecordWindow::fit_to_pace(Duration since) {
  constexpr double kSeconds = 0.5;
  const auto count = static_cast<double>(first_key_ - std::exchange(first_key_then_, first_key_));
  if (since <= Duration{0}) return;
  const auto wanted = static_cast<std::size_t>(count / seconds(since) * kSeconds);
  record_max_ = std::clamp(wanted, record_least_, record_most_);
}

// Not by `recount`, which looks at all of the record: every text comes by here.
WindowRecord& RecordWindow::note_tokens(ItemKey key, std::uint32_t token_count) {
  auto* record = find(key);
  MUSTER_CHECK(record != nullptr);
  size_ -= record->size;
  record->size -= size_of_ids(record->entry.token_count);
  record->size += size_of_ids(token_count);
  size_ += record->size;
  record->entry.token_count = token_count;
  return *record;
}

void RecordWindow::note_result(ItemKey key, RecordResult result) {
  auto* record = find(key);
  MUSTER_CHECK(record != nullptr);
  record->result = std::move(result);
  record->is_done = true;
  recount(*record);
}

WindowRecord* RecordWindow::find(ItemKey key) {
  if (key < first_key_ || key - first_key_ >= records_.size()) return nullptr;
  return records_[key - first_key_].get();
}

WindowRecord* RecordWindow::front_if_done() {
  return !records_.empty() && records_.front()->is_done ? records_.front().get() : nullptr;
}

Status RecordWindow::visit_done(bool only_waiting,
                                const std::function<Status(const WindowRecord&)>& visit) const {
  bool waits = !only_waiting;
  for (const auto& record : records_) {
    if (record->is_done && waits) MUSTER_TRY(visit(*record));
    waits |= !record->is_done;
  }
  return Done{};
}

RecordPtr RecordWindow::pop_front() {
  auto record = std::move(records_.front());
  records_.pop_front();
  size_ -= record->size;
  ++first_key_;
  return record;
}

void RecordWindow::recount(WindowRecord& record) {
  size_ -= record.size;
  record.size = size_of(record);
  size_ += record.size;
}

// Its text and kept fields, its ids, once their number is known (the coordinator holds them
// meanwhile, or a server), its reply, and the record itself. Rows are bounded by the number of
// records.
std::uint64_t RecordWindow::size_of(const WindowRecord& record) {
  return sizeof(WindowRecord) + record.entry.text.size() + record.entry.id.size() +
         record.entry.fields.size() + record.result.reply.size() +
         size_of_ids(record.entry.token_count);
}

}  // namespace muster
