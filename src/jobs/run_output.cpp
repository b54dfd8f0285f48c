// Vectors, index and journal of a run on disk, from their part names to the final ones. Vectors and
// index grow under part names; a step is journalled only after both are on the disk, so the journal
// never speaks of what is not there. The vectors get their final name last: where it is there,
// index and record are there too. After a crash between two renames --resume does the rest, because
// the journal says that only names are missing. Each part has a running hash, which is started anew
// with each step, and one over the whole for the record.

#include "jobs/run_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"
#include "dataset/file_hash.h"
#include "dataset/json_text.h"
#include "dataset/own_file.h"
#include "jobs/foreign_files.h"

namespace muster {
namespace {

constexpr std::size_t kIndexBuffer = 256 * 1024;  // bytes gathered before a write

std::filesystem::path with_ending(std::filesystem::path path, const char* ending) {
  path += ending;
  return path;
}

Result<UniqueFd> open_index(const std::filesystem::path& path, std::uint64_t size) {
  auto fd = MUSTER_TRY(open_own_file(path, O_WRONLY | O_CREAT));
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0 ||
      ::lseek(fd.get(), static_cast<off_t>(size), SEEK_SET) < 0) {
    return system_error(path.string(), "cut", errno);
  }
  return fd;
}

Status write_durably(const std::filesystem::path& path, const std::string& content) {
  const auto fd = MUSTER_TRY(open_own_file(path, O_WRONLY | O_CREAT | O_TRUNC));
  MUSTER_TRY(write_all(fd.get(), content, path));
  if (::fsync(fd.get()) != 0) return system_error(path.string(), "sync", errno);
  return Done{};
}

Error part_is_gone(const std::filesystem::path& part) {
  return Error{ErrorKind::Corrupt,
               fmt::format("{}: gone, and the journal speaks of it: start anew with --restart",
                           part.string())};
}

// A part that is not there has its final name already.
Status publish_part(const std::filesystem::path& part, const std::filesystem::path& whole) {
  if (::rename(part.c_str(), whole.c_str()) == 0) return Done{};
  if (errno != ENOENT) return system_error(whole.string(), "rename", errno);
  if (!std::filesystem::exists(whole)) return part_is_gone(part);
  return Done{};
}

}  // namespace

RunFiles::RunFiles(const std::filesystem::path& out_path)
    : out(out_path),
      index(index_path_of(out_path)),
      about(record_path_of(out_path)),
      out_part(with_ending(out, ".part")),
      index_part(with_ending(index, ".part")),
      about_part(with_ending(about, ".part")),
      journal(with_ending(out, ".journal")),
      journal_part(RunJournal::part_path_of(journal)),
      ahead(with_ending(out, ".ahead")),
      lock(with_ending(out, ".lock")) {}

std::vector<std::filesystem::path> RunFiles::all() const {
  return {out, index, about, out_part, index_part, about_part, journal, journal_part, ahead, lock};
}

std::string line_members(const IndexEntry& entry) {
  std::string members;
  if (!entry.id.empty()) {
    members += R"("id":)";
    append_json_string(entry.id, members);
    members += ',';
  }
  if (!entry.fields.empty()) {
    members += R"("fields":)";
    members += entry.fields;
    members += ',';
  }
  return members;
}

Result<RunResumption> find_resumption(const RunFiles& files, VectorFormat format,
                                      const RunIdentity& identity) {
  auto reopened = MUSTER_TRY(RunJournal::reopen(files.journal, identity));
  for (const auto& part : {files.out_part, files.index_part}) {
    if (!reopened.steps.empty() && !std::filesystem::exists(part)) return part_is_gone(part);
  }
  const RunParts parts{files.out_part, vector_header_size(format), files.index_part};
  const auto sound_count = MUSTER_TRY(count_intact_steps(reopened.steps, parts));
  if (sound_count < reopened.steps.size()) MUSTER_TRY(reopened.journal->truncate(sound_count));
  return RunResumption{.journal = std::move(reopened.journal),
                       .last = sound_count > 0 ? reopened.steps[sound_count - 1] : RunStep{}};
}

Status publish(const RunFiles& files) {
  MUSTER_TRY(publish_part(files.index_part, files.index));
  MUSTER_TRY(publish_part(files.about_part, files.about));
  MUSTER_TRY(publish_part(files.out_part, files.out));
  ::unlink(files.journal_part.c_str());  // of a run that was killed while it began
  ::unlink(files.ahead.c_str());
  // Gone for good before the journal: without it they could not be told from somebody else's.
  MUSTER_TRY(sync_folder(files.out.parent_path()));
  if (::unlink(files.journal.c_str()) != 0 && errno != ENOENT) {
    return system_error(files.journal.string(), "remove", errno);
  }
  return sync_folder(files.out.parent_path());
}

void discard(const RunFiles& files) {
  // The journal last: what is left without one could not be told from somebody else's files.
  for (const auto& path : {files.about_part, files.index_part, files.out_part, files.ahead,
                           files.journal_part, files.journal}) {
    ::unlink(path.c_str());
  }
}

Result<std::unique_ptr<RunOutput>> RunOutput::open(const RunFiles& files, const RowShape& shape,
                                                   const RunIdentity& identity,
                                                   std::optional<RunResumption> resumption) {
  const auto step = resumption ? resumption->last : RunStep{};
  std::optional<VectorWriter::Place> place;
  if (step.record_count > 0) {
    place = VectorWriter::Place{
        .row_count = step.row_count, .size = step.vectors_size, .rows_hash = ""};
  }
  if (!resumption) ::unlink(files.ahead.c_str());
  // The old journal goes before the old parts are cut: a journal never speaks of bytes that are
  // gone.
  auto journal = resumption ? std::move(resumption->journal)
                            : MUSTER_TRY(RunJournal::create(files.journal, identity));
  auto vectors = MUSTER_TRY(VectorWriter::open(files.out_part, shape.format, shape.dim, place));
  auto index = MUSTER_TRY(open_index(files.index_part, step.index_size));
  MUSTER_TRY(sync_folder(files.out.parent_path()));
  Hash128 index_hash;
  MUSTER_TRY(hash_bytes_of(files.index_part, 0, step.index_size, index_hash));
  return std::unique_ptr<RunOutput>(new RunOutput(files, shape.has_objects, std::move(vectors),
                                                  std::move(index), std::move(journal), step,
                                                  std::move(index_hash)));
}

RunOutput::RunOutput(const RunFiles& files, bool has_objects, std::unique_ptr<VectorWriter> vectors,
                     UniqueFd index, std::unique_ptr<RunJournal> journal, const RunStep& step,
                     Hash128 whole_index_hash)
    : files_(files),
      has_objects_(has_objects),
      vectors_(std::move(vectors)),
      index_(std::move(index)),
      journal_(std::move(journal)),
      step_(step),
      durable_record_count_(step.record_count),
      whole_index_hash_(std::move(whole_index_hash)),
      steps_([this](const RunStep& durable) { return make_durable(durable); }) {}

// After a failed write nobody knows what the files hold: what is journalled must not speak of it.
Status RunOutput::keep(Status outcome) {
  if (!outcome && state_) state_ = outcome.error();
  return outcome;
}

Status RunOutput::append(IndexEntry& entry, std::span<const float> row) {
  MUSTER_TRY(Status(state_));
  return keep(append_record(entry, row));
}

Status RunOutput::append_record(IndexEntry& entry, std::span<const float> row) {
  entry.row = std::nullopt;
  if (!row.empty()) {
    MUSTER_TRY(append_row(entry, row));
    entry.row = step_.row_count++;
  }
  ++step_.record_count;
  append_index_line(entry, index_buffer_);
  if (index_buffer_.size() >= kIndexBuffer) return flush_index();
  return Done{};
}

Status RunOutput::append_row(const IndexEntry& entry, std::span<const float> row) {
  if (!has_objects_) return vectors_->append(row);
  return vectors_->append_object(line_members(entry), row);
}

Status RunOutput::flush_index() {
  MUSTER_TRY(write_all(index_.get(), index_buffer_, files_.index_part));
  index_hash_.update(index_buffer_);
  whole_index_hash_.update(index_buffer_);
  step_.index_size += index_buffer_.size();
  index_buffer_.clear();
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
  MUSTER_TRY(keep(flush_index()));
  const auto place = vectors_->mark();
  if (!place) return keep(place.error());
  step_.vectors_size = place->size;
  step_.vectors_hash = place->rows_hash;
  step_.index_hash = std::exchange(index_hash_, Hash128()).hex();
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
  if (::fdatasync(index_.get()) != 0) {
    return system_error(files_.index_part.string(), "sync", errno);
  }
  MUSTER_TRY(vectors_->make_durable());
  return journal_->append(step);
}

Status RunOutput::finish(OutputRecord record) {
  MUSTER_TRY(commit(record.records_hash));
  state_ = Error{ErrorKind::Internal, "the output is closed"};  // nothing follows in the journal
  auto whole = MUSTER_TRY(vectors_->finish());
  record.row_count = whole.row_count;
  record.vectors_size = whole.size;
  record.vectors_hash = std::move(whole.hash);
  record.index_size = step_.index_size;
  record.index_hash = whole_index_hash_.hex();
  record.record_count = step_.record_count;
  MUSTER_TRY(write_durably(files_.about_part, output_record_json(record)));
  MUSTER_TRY(sync_folder(files_.out.parent_path()));
  // From here on only the names are missing.
  MUSTER_TRY(journal_->append_finished());
  is_finished_ = true;
  MUSTER_TRY(check_none_foreign(files_));  // in hours somebody may have put a file there
  return publish(files_);
}

}  // namespace muster
