// The parts of a run on disk, and its journal, from their part names to the final ones. A step is
// journalled only after the parts are on the disk, so the journal never speaks of what is not
// there. Each part has a running hash, which is started anew with each step, and one over the whole
// for the record.

#include "jobs/run_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"
#include "dataset/own_file.h"
#include "jobs/foreign_files.h"

namespace muster {
namespace {

Status write_durably(const std::filesystem::path& path, const std::string& content) {
  const auto fd = MUSTER_TRY(open_own_file(path, O_WRONLY | O_CREAT | O_TRUNC));
  MUSTER_TRY(write_all(fd.get(), content, path));
  if (::fsync(fd.get()) != 0) return system_error(path.string(), "sync", errno);
  return Done{};
}

}  // namespace

Result<std::unique_ptr<RunOutput>> RunOutput::open(const RunFiles& files,
                                                   const OpenParts& open_parts,
                                                   const RunIdentity& identity,
                                                   std::optional<RunResumption> resumption) {
  const auto step = resumption ? resumption->last : RunStep{};
  if (!resumption) ::unlink(files.ahead.c_str());
  // The old journal goes before the old parts are cut: a journal never speaks of bytes that are
  // gone.
  auto journal = resumption ? std::move(resumption->journal)
                            : MUSTER_TRY(RunJournal::create(files.journal, identity));
  auto parts = MUSTER_TRY(open_parts(step));
  MUSTER_TRY(sync_folder(files.out.parent_path()));
  return std::unique_ptr<RunOutput>(
      new RunOutput(files, std::move(parts), std::move(journal), step));
}

RunOutput::RunOutput(const RunFiles& files, std::unique_ptr<OutputParts> parts,
                     std::unique_ptr<RunJournal> journal, const RunStep& step)
    : files_(files),
      parts_(std::move(parts)),
      journal_(std::move(journal)),
      step_(step),
      durable_record_count_(step.record_count),
      steps_([this](const RunStep& durable) { return make_durable(durable); }) {}

// After a failed write nobody knows what the files hold: what is journalled must not speak of it.
Status RunOutput::keep(Status outcome) {
  if (!outcome && state_) state_ = outcome.error();
  return outcome;
}

Status RunOutput::append(WindowRecord& record) {
  MUSTER_TRY(Status(state_));
  return keep(append_record(record));
}

Status RunOutput::append_record(WindowRecord& record) {
  MUSTER_TRY(parts_->append(record, step_.row_count));
  if (record.entry.row) ++step_.row_count;
  ++step_.record_count;
  return Done{};
}

Status RunOutput::commit(const std::string& records_hash) {
  MUSTER_TRY(settle(steps_.wait()));
  MUSTER_TRY(begin_step(records_hash));
  return settle(steps_.wait());
}

Status RunOutput::begin_commit(const std::string& records_hash) {
  if (steps_.is_under_way()) return Done{};
  MUSTER_TRY(settle(steps_.take()));
  return begin_step(records_hash);
}

Status RunOutput::begin_step(const std::string& records_hash) {
  MUSTER_TRY(Status(state_));
  MUSTER_TRY(keep(parts_->mark(step_)));
  step_.records_hash = records_hash;
  steps_.begin(step_);
  return Done{};
}

Status RunOutput::settle(std::optional<Result<RunStep>> outcome) {
  if (!outcome) return Status(state_);
  if (!*outcome) return keep(outcome->error());
  durable_record_count_ = (*outcome)->record_count;
  return Status(state_);
}

// On the thread of steps_. What is written meanwhile may become durable with it, and is in no
// journal: a resumed run cuts it off.
Status RunOutput::make_durable(const RunStep& step) {
  MUSTER_TRY(parts_->make_durable());
  return journal_->append(step);
}

Status RunOutput::finish(OutputRecord record) {
  MUSTER_TRY(commit(record.records_hash));
  state_ = Error{ErrorKind::Internal, "the output is closed"};  // nothing follows in the journal
  record.row_count = step_.row_count;
  record.record_count = step_.record_count;
  MUSTER_TRY(parts_->finish(record));
  MUSTER_TRY(write_durably(files_.about_part, output_record_json(record)));
  MUSTER_TRY(sync_folder(files_.out.parent_path()));
  // From here on only the names are missing.
  MUSTER_TRY(journal_->append_finished());
  is_finished_ = true;
  MUSTER_TRY(check_none_foreign(files_));  // in hours somebody may have put a file there
  return publish(files_);
}

}  // namespace muster
