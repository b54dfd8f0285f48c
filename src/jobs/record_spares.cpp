// What goes round between the loop of a run and the thread that writes. The last one that came back
// goes out first: it is the likeliest to be in a cache.

#include "jobs/record_spares.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/prefetch.h"

namespace muster {
namespace {

// Little beside the window, and more than what comes back between two looks at the writer.
constexpr std::size_t kRecordsMost = 8192;        // and as many rows
constexpr std::uint64_t kRowsMost = 12ULL << 20;  // bytes: those of 384 values

// Of each text of a record, in bytes: a longer one is rare, or takes its device long.
constexpr std::size_t kTextKept = 512;

// A string that an empty one is assigned to keeps its memory.
void renew(std::string& text) {
  text.clear();
  if (text.capacity() > kTextKept) std::string().swap(text);
}

// The members by position: whoever adds one is told to add it here.
void renew(IndexEntry& entry) {
  auto& [row, id, input, line, token_count, is_truncated, fields, text, reason] = entry;
  row = std::nullopt;
  line = 0;
  token_count = 0;
  is_truncated = false;
  for (auto* words : {&id, &input, &fields, &text, &reason}) renew(*words);
}

void renew(WindowRecord& record) {
  auto& [key, number, entry, is_conversation, result, is_done, is_resumed, position, size] = record;
  key = 0;
  number = position = size = 0;
  is_conversation = is_done = is_resumed = false;
  renew(entry);
  auto& [row, reply, reply_token_count] = result;
  row.clear();
  renew(reply);
  reply_token_count = 0;
}

std::uint64_t size_of(const std::vector<float>& row) { return row.capacity() * sizeof(float); }
std::span<const std::byte> memory_of(const std::vector<float>& row) {
  return {reinterpret_cast<const std::byte*>(row.data()), size_of(row)};
}

}  // namespace

RecordPtr RecordSpares::take_record() {
  if (records_.empty()) return std::make_unique<WindowRecord>();
  auto record = std::move(records_.back());
  records_.pop_back();
  return record;
}

std::vector<float> RecordSpares::take_row() {
  auto row = pop_row();
  if (!rows_.empty()) prefetch_to_write(memory_of(rows_.back()));  // the next one to go
  return row;
}

void RecordSpares::add(RecordPtr record) {
  auto row = std::move(record->result.row);
  if (row.capacity() > 0 && has_room_for(row)) add_row(std::move(row));
  if (records_.size() >= kRecordsMost) return;
  renew(*record);
  records_.push_back(std::move(record));
}

void RecordSpares::take_records_from(RecordSpares& other) {
  if (records_.empty()) records_.swap(other.records_);
  while (!other.records_.empty() && records_.size() < kRecordsMost) {
    records_.push_back(other.take_record());
  }
}

void RecordSpares::take_from(RecordSpares& other) {
  take_records_from(other);
  if (rows_.empty()) {
    rows_.swap(other.rows_);
    std::swap(rows_size_, other.rows_size_);
  }
  while (!other.rows_.empty() && has_room_for(other.rows_.back())) add_row(other.pop_row());
}

bool RecordSpares::is_low() const {
  const bool has_rows = rows_.size() >= kRecordsMost / 2 || rows_size_ >= kRowsMost / 2;
  return records_.size() < kRecordsMost / 2 || !has_rows;
}

bool RecordSpares::has_room_for(const std::vector<float>& row) const {
  return rows_.size() < kRecordsMost && rows_size_ + size_of(row) <= kRowsMost;
}

std::vector<float> RecordSpares::pop_row() {
  if (rows_.empty()) return {};
  auto row = std::move(rows_.back());
  rows_.pop_back();
  rows_size_ -= size_of(row);
  return row;
}

void RecordSpares::add_row(std::vector<float> row) {
  rows_size_ += size_of(row);
  rows_.push_back(std::move(row));
}

}  // namespace muster
