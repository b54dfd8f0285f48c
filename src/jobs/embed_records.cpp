// Records come in in input order, their rows in any order; what is done leaves in input order.

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/check.h"
#include "jobs/embed_run.h"
#include "jobs/stream_output.h"

namespace muster {
namespace {

constexpr int kRecordsPerTurn = 256;  // read between two looks at the workers: about a millisecond
constexpr Duration kCommitInterval = std::chrono::seconds(1);  // what a crash can cost

Error not_finite(Precision precision) {
  std::string message = "the vector of this text is not finite (NaN or infinity)";
  if (precision != Precision::Fp32) {
    message += fmt::format(" in {}; --precision fp32 has more room", precision_name(precision));
  }
  return Error{ErrorKind::InvalidArgument, message};
}

}  // namespace

Status EmbedRun::read_turn() {
  for (int i = 0; i < kRecordsPerTurn && window_.has_room(); ++i) {
    position_before_ = reader_->size_consumed();
    {
      const Stopwatch watch(clock_, time_.read);
      is_at_end_ = !MUSTER_TRY(reader_->next(record_));
    }
    if (is_at_end_) return check_has_texts();
    MUSTER_TRY(take_record());
  }
  return Done{};
}

// A program in front of a pipe that went wrong writes nothing: that is no reason to replace
// vectors.
Status EmbedRun::check_has_texts() const {
  std::error_code ignored;
  const bool is_in_the_way = !options_.stream && std::filesystem::exists(files_.out, ignored);
  if (progress_.read_count > 0 || !is_in_the_way) return Done{};
  return Error{ErrorKind::InvalidArgument,
               fmt::format("there is no text in the input, so {} is left as it is: remove it first "
                           "if it is to have no rows",
                           files_.out.string())};
}

Status EmbedRun::take_record() {
  ++progress_.read_count;
  note_id();
  WindowRecord taken;
  taken.entry.input = options_.input.inputs[record_.input_index];
  taken.entry.line = record_.line;
  taken.entry.id = record_.id;
  taken.entry.fields = record_.fields;
  taken.input_position = reader_->size_consumed();
  if (record_.fault) {
    if (!options_.skip_bad) return stopping_fault(record_);
    taken.entry.reason = record_.fault->message;
    taken.is_done = true;
    window_.push(std::move(taken));
    return Done{};
  }
  if (take_ahead(taken)) {
    window_.push(std::move(taken));
    return Done{};
  }
  const auto key = window_.next_key();
  backend_->submit(key, record_.text);
  if (!options_.server && unknown_count_++ == 0) encoded_position_ = position_before_;
  taken.entry.text = record_.text;
  MUSTER_CHECK(window_.push(std::move(taken)) == key);
  return Done{};
}

// The row was computed before its turn by the run that was interrupted.
bool EmbedRun::take_ahead(WindowRecord& taken) {
  if (!ahead_) return false;
  auto row = ahead_->find(first_record_ + window_.next_key(), record_.text);
  if (!row) return false;
  taken.entry.text = record_.text;
  taken.entry.token_count = row->token_count;
  taken.entry.is_truncated = row->is_truncated;
  taken.row = std::move(row->values);
  taken.is_done = true;
  taken.is_resumed = true;
  ++progress_.resumed_count;
  if (!options_.server) {  // which tells of no tokens before their rows
    progress_.read_token_count += row->token_count;
    progress_.resumed_token_count += row->token_count;
  }
  return true;
}

// Whoever gives ids means them to be different; it is no error that they are not.
void EmbedRun::note_id() {
  if (record_.id.empty() || !ids_.add(record_.id)) return;
  if (progress_.duplicate_id_count++ > 0) return;
  first_duplicate_ = place_name(options_.input.inputs[record_.input_index], record_.line);
}

void EmbedRun::on_tokens(ItemKey key, const Tokenizer::Encoded& tokens) {
  auto* record = window_.find(key);
  MUSTER_CHECK(record != nullptr && !record->is_done);
  window_.note_tokens(key, tokens.token_count);
  record->entry.is_truncated = tokens.is_truncated;
  // A server tells of a text's tokens only when it has computed it.
  if (options_.server) return;
  progress_.read_token_count += tokens.token_count;
  encoded_position_ = record->input_position;
  --unknown_count_;
}

void EmbedRun::on_row(ItemKey key, std::span<const std::byte> row) {
  auto* record = window_.find(key);
  MUSTER_CHECK(record != nullptr && !record->is_done);
  record->row.resize(row.size() / sizeof(float));
  std::memcpy(record->row.data(), row.data(), row.size());
  if (!first_row_at_) first_row_at_ = clock_.now();
  if (!is_all_finite(record->row)) {
    record->row.clear();
    return on_item_failed(key, not_finite(backend_->model().precision));
  }
  record->is_done = true;
}

void EmbedRun::on_item_failed(ItemKey key, const Error& error) {
  auto* record = window_.find(key);
  MUSTER_CHECK(record != nullptr && !record->is_done);
  const auto message = fmt::format("{}: {}", place_of(record->entry), error.message);
  if (!options_.skip_bad) {
    fatal_ = Error{error.kind, with_skip_bad_hint(message)};
    return;
  }
  record->entry.reason = message;
  record->is_done = true;
}

Status EmbedRun::open_output() {
  if (writer_) return Done{};
  const auto dim = backend_->status().dim;
  if (dim == 0) return Done{};
  last_commit_ = clock_.now();
  if (options_.stream) {
    writer_ = std::make_unique<RecordWriter>(std::make_unique<StreamOutput>(*options_.stream),
                                             std::move(records_hash_));
    return Done{};
  }
  if (ahead_ && ahead_->dim() != 0 && ahead_->dim() != dim) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("{}: rows of {} values, and the model gives {}: start anew with "
                             "--restart",
                             files_.ahead.string(), ahead_->dim(), dim)};
  }
  const RowShape shape{.format = format_, .dim = dim, .has_objects = writes_objects(options_)};
  writer_ = std::make_unique<RecordWriter>(
      MUSTER_TRY(
          RunOutput::open(files_, shape, identity_, std::exchange(resumption_, std::nullopt))),
      std::move(records_hash_));
  return Done{};
}

Status EmbedRun::write_done() {
  // A bad record is done before any worker has said how long a row is.
  if (!writer_) return Done{};
  MUSTER_TRY(writer_->status());
  while (window_.front_if_done() != nullptr && writer_->has_room()) {
    std::vector<WindowRecord> done;
    for (int i = 0; i < kRecordsPerTurn && window_.front_if_done() != nullptr; ++i) {
      done.push_back(std::move(*window_.front_if_done()));
      window_.pop_front();
    }
    writer_->give(std::move(done));
  }
  if (clock_.now() - last_commit_ >= kCommitInterval) return commit();
  return Done{};
}

Status EmbedRun::commit() {
  const auto now = clock_.now();
  window_.fit_to_pace(now - std::exchange(last_commit_, now));
  writer_->begin_commit();
  return keep_ahead();
}

// Behind a step: what it has made durable need not be ahead any more. Where there is no room, the
// output itself may still have some, so the run goes on with what was kept before.
Status EmbedRun::keep_ahead() {
  const auto begin = clock_.now();
  if (!ahead_share_.is_due(begin)) return Done{};
  const auto kept = put_ahead(/*only_waiting=*/true);
  ahead_share_.note(begin, clock_.now());
  if (kept || kept.error().kind != ErrorKind::ResourceExhausted) return kept;
  if (!std::exchange(has_told_of_no_room_, true)) {
    events_.on_notice(fmt::format(
        "{}; the run goes on, but --resume may find fewer of the rows that wait for their turn",
        kept.error().message));
  }
  return Done{};
}

// What a crash would else cost: rows that wait for an earlier one; at an early end also those that
// the writer could not write. One that cannot be kept does not keep those before it from counting.
Status EmbedRun::put_ahead(bool only_waiting) {
  if (!ahead_) return Done{};
  MUSTER_TRY(ahead_->drop_before(writer_->counts().durable_record_count));
  const auto keep = [this](const WindowRecord& record) -> Status {
    const auto number = first_record_ + record.key;
    if (record.row.empty() || ahead_->has(number)) return Done{};
    return ahead_->put({.record = number,
                        .text = record.entry.text,
                        .token_count = record.entry.token_count,
                        .is_truncated = record.entry.is_truncated},
                       record.row);
  };
  Status put = Done{};
  if (!only_waiting) {
    for (const auto& record : writer_->unwritten()) {
      if (put) put = keep(record);
    }
  }
  if (put) put = window_.visit_done(only_waiting, keep);
  const auto synced = ahead_->sync();
  return put ? synced : put;
}

// At an early end. Rows may be kept where the step was not; an error would only hide the first one.
void EmbedRun::keep_all() {
  (void)writer_->commit();
  (void)put_ahead(/*only_waiting=*/false);
}

// Records that a resumed run would not compute again.
std::uint64_t EmbedRun::kept_count() const {
  return writer_->counts().durable_record_count + (ahead_ ? ahead_->durable_count() : 0);
}

}  // namespace muster
