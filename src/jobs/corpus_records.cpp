// Records come in in input order, their results in any order; what is done leaves in input order.

#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "jobs/corpus_run.h"

namespace muster {
namespace {

constexpr int kRecordsPerTurn = 256;  // read between two looks at the workers: about a millisecond
constexpr Duration kCommitInterval = std::chrono::seconds(1);  // what a crash can cost

}  // namespace

Status CorpusRun::read_turn() {
  const Stopwatch watch(clock_, time_.read);  // not each record: looking costs as much as reading
  for (int i = 0; i < kRecordsPerTurn && window_.has_room(); ++i) {
    if (i > 0 && !source_->is_ready()) break;
    position_before_ = source_->size_consumed();
    is_at_end_ = !MUSTER_TRY(source_->next(read_));
    if (is_at_end_) return check_has_texts();
    MUSTER_TRY(take_record());
  }
  return Done{};
}

// A program in front of a pipe that went wrong writes nothing: that is no reason to replace what an
// earlier run has made.
Status CorpusRun::check_has_texts() const {
  std::error_code ignored;
  const auto& out = form_.files.out;
  const bool is_in_the_way = !options_.stream && std::filesystem::exists(out, ignored);
  if (progress_.read_count > 0 || !is_in_the_way) return Done{};
  return Error{ErrorKind::InvalidArgument,
               fmt::format("there is no {} in the input, so {} is left as it is: remove it first "
                           "if it is to have no {}",
                           form_.text_word, out.string(), results_word())};
}

Status CorpusRun::take_record() {
  ++progress_.read_count;
  auto& record = *read_.record;
  note_id(record.entry);
  record.number = first_record_ + window_.next_key();
  if (read_.fault) {
    const auto& fault = *read_.fault;
    if (!options_.skip_bad) return Error{fault.kind, with_skip_bad_hint(fault.message)};
    record.entry.reason = fault.message;
    record.is_done = true;
    window_.push(std::move(read_.record));
    return Done{};
  }
  const bool is_done = take_ahead(record);
  window_.push(std::move(read_.record));
  if (is_done) return Done{};
  if (form_.knows_tokens && unknown_count_++ == 0) encoded_position_ = position_before_;
  backend_->submit(record);
  return Done{};
}

// The result was computed before its turn by the run that was interrupted.
bool CorpusRun::take_ahead(WindowRecord& taken) {
  if (!ahead_ || !ahead_->take(taken)) return false;
  taken.is_done = true;
  taken.is_resumed = true;
  ++progress_.resumed_count;
  if (form_.knows_tokens) {
    progress_.read_token_count += taken.entry.token_count;
    progress_.resumed_token_count += taken.entry.token_count;
  }
  return true;
}

// Whoever gives ids means them to be different; it is no error that they are not.
void CorpusRun::note_id(const IndexEntry& entry) {
  if (entry.id.empty() || !ids_.add(entry.id)) return;
  if (progress_.duplicate_id_count++ > 0) return;
  first_duplicate_ = place_of(entry);
}

void CorpusRun::on_tokens(ItemKey key, const Tokenizer::Encoded& tokens) {
  auto& record = window_.note_tokens(key, tokens.token_count);
  MUSTER_CHECK(!record.is_done);
  record.entry.is_truncated = tokens.is_truncated;
  if (!form_.knows_tokens) return;
  progress_.read_token_count += tokens.token_count;
  encoded_position_ = record.input_position;
  --unknown_count_;
}

void CorpusRun::on_result(ItemKey key, RecordResult result) {
  const auto* record = window_.find(key);
  MUSTER_CHECK(record != nullptr && !record->is_done);
  if (!first_result_at_) first_result_at_ = clock_.now();
  window_.note_result(key, std::move(result));
}

void CorpusRun::on_row(ItemKey key, std::span<const std::byte> bytes) {
  auto* record = window_.find(key);
  MUSTER_CHECK(record != nullptr && !record->is_done);
  if (!first_result_at_) first_result_at_ = clock_.now();
  auto& row = record->result.row;
  row = spares_.take_row();
  row.resize(bytes.size() / sizeof(float));
  std::memcpy(row.data(), bytes.data(), bytes.size());
  record->is_done = true;
}

void CorpusRun::on_failed(ItemKey key, const Error& error) {
  auto* record = window_.find(key);
  MUSTER_CHECK(record != nullptr && !record->is_done);
  const auto message = fmt::format("{}: {}", place_of(record->entry), error.message);
  if (!options_.skip_bad) {
    if (!fatal_) fatal_ = Error{error.kind, with_skip_bad_hint(message)};
    return;
  }
  record->entry.reason = message;
  record->is_done = true;
}

Status CorpusRun::open_output() {
  if (writer_) return Done{};
  auto output = MUSTER_TRY(work_.open_output(resumption_));
  if (output == nullptr) return Done{};
  last_commit_ = clock_.now();
  writer_ = std::make_unique<RecordWriter>(std::move(output), std::move(records_hash_));
  return Done{};
}

Status CorpusRun::write_done() {
  // A bad record is done before any worker has said what shape a result has.
  if (!writer_) return Done{};
  MUSTER_TRY(writer_->status());
  while (window_.front_if_done() != nullptr && writer_->has_room()) {
    std::vector<RecordPtr> done;
    done.reserve(kRecordsPerTurn);
    for (int i = 0; i < kRecordsPerTurn && window_.front_if_done() != nullptr; ++i) {
      done.push_back(window_.pop_front());
    }
    writer_->give(std::move(done));
  }
  if (spares_.is_low()) {
    writer_->return_to(spares_);
    source_->take_spares(spares_);
  }
  if (clock_.now() - last_commit_ >= kCommitInterval) return commit();
  return Done{};
}

Status CorpusRun::commit() {
  const auto now = clock_.now();
  window_.fit_to_pace(now - std::exchange(last_commit_, now));
  writer_->begin_commit();
  return keep_ahead();
}

// Behind a step: what it has made durable need not be ahead any more. Where there is no room, the
// output itself may still have some, so the run goes on with what was kept before.
Status CorpusRun::keep_ahead() {
  const auto begin = clock_.now();
  if (!ahead_share_.is_due(begin)) return Done{};
  const auto kept = put_ahead(/*only_waiting=*/true);
  ahead_share_.note(begin, clock_.now());
  if (kept || kept.error().kind != ErrorKind::ResourceExhausted) return kept;
  if (!std::exchange(has_told_of_no_room_, true)) {
    events_.on_notice(fmt::format(
        "{}; the run goes on, but --resume may find fewer of the {} that wait for their turn",
        kept.error().message, results_word()));
  }
  return Done{};
}

// What a crash would else cost: results that wait for an earlier one; at an early end also those
// that the writer could not write.
Status CorpusRun::put_ahead(bool only_waiting) {
  if (!ahead_) return Done{};
  std::vector<const WindowRecord*> waiting;
  if (!only_waiting) {
    for (const auto& record : writer_->unwritten()) waiting.push_back(record.get());
  }
  MUSTER_TRY(window_.visit_done(only_waiting, [&](const WindowRecord& record) -> Status {
    waiting.push_back(&record);
    return Done{};
  }));
  return ahead_->keep(writer_->counts().durable_record_count, waiting);
}

// At an early end. Results may be kept where the step was not; an error would only hide the first
// one.
void CorpusRun::keep_all() {
  (void)writer_->commit();
  (void)put_ahead(/*only_waiting=*/false);
}

// Records that a resumed run would not compute again.
std::uint64_t CorpusRun::kept_count() const {
  return writer_->counts().durable_record_count + (ahead_ ? ahead_->durable_count() : 0);
}

}  // namespace muster
