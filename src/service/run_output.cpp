#include "service/run_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"

namespace muster {
namespace {

constexpr std::size_t kIndexBuffer = 256 * 1024;  // bytes gathered before a write

std::filesystem::path with_ending(std::filesystem::path path, const char* ending) {
  path += ending;
  return path;
}

Result<UniqueFd> open_index(const std::filesystem::path& path, std::uint64_t size) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.is_open()) return system_error(path.string(), "create", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0 ||
      ::lseek(fd.get(), static_cast<off_t>(size), SEEK_SET) < 0) {
    return system_error(path.string(), "cut", errno);
  }
  return fd;
}

Status rename_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return system_error(to.string(), "rename", errno);
  return Done{};
}

// Gives a finished file its part name again, where the part is gone.
Status take_back(const std::filesystem::path& whole, const std::filesystem::path& part) {
  if (std::filesystem::exists(part) || !std::filesystem::exists(whole)) return Done{};
  return rename_file(whole, part);
}

}  // namespace

RunFiles::RunFiles(const std::filesystem::path& out_path)
    : out(out_path),
      index(index_path_of(out_path)),
      about(std::filesystem::path(out_path).replace_extension(".run.json")),
      out_part(with_ending(out, ".part")),
      index_part(with_ending(index, ".part")),
      journal(with_ending(out, ".journal")) {}

Result<RunResumption> find_resumption(const RunFiles& files, VectorFormat format,
                                      const RunIdentity& identity) {
  auto reopened = MUSTER_TRY(RunJournal::reopen(files.journal, identity));
  // A step in the journal says that both parts were there. One that is not has its final name: the
  // end came within `finish`. Without a step, a final name is that of an older run.
  if (!reopened.steps.empty()) {
    MUSTER_TRY(take_back(files.index, files.index_part));
    MUSTER_TRY(take_back(files.out, files.out_part));
  }
  const RunParts parts{files.out_part, vector_header_size(format), files.index_part};
  const auto sound_count = MUSTER_TRY(count_intact_steps(reopened.steps, parts));
  if (sound_count < reopened.steps.size()) MUSTER_TRY(reopened.journal->truncate(sound_count));
  return RunResumption{.journal = std::move(reopened.journal),
                       .last = sound_count > 0 ? reopened.steps[sound_count - 1] : RunStep{}};
}

Result<std::unique_ptr<RunOutput>> RunOutput::open(const RunFiles& files, VectorFormat format,
                                                   std::uint32_t dim, const RunIdentity& identity,
                                                   std::optional<RunResumption> resumption) {
  const auto step = resumption ? resumption->last : RunStep{};
  std::optional<VectorWriter::Place> place;
  if (step.record_count > 0) {
    place = VectorWriter::Place{
        .row_count = step.row_count, .size = step.vectors_size, .rows_hash = ""};
  }
  // The old journal goes before the old parts are cut: a journal never speaks of bytes that are
  // gone.
  auto journal = resumption ? std::move(resumption->journal)
                            : MUSTER_TRY(RunJournal::create(files.journal, identity));
  auto vectors = MUSTER_TRY(VectorWriter::open(files.out_part, format, dim, place));
  auto index = MUSTER_TRY(open_index(files.index_part, step.index_size));
  return std::unique_ptr<RunOutput>(
      new RunOutput(files, std::move(vectors), std::move(index), std::move(journal), step));
}

RunOutput::RunOutput(const RunFiles& files, std::unique_ptr<VectorWriter> vectors, UniqueFd index,
                     std::unique_ptr<RunJournal> journal, const RunStep& step)
    : files_(files),
      vectors_(std::move(vectors)),
      index_(std::move(index)),
      journal_(std::move(journal)),
      step_(step) {}

Status RunOutput::append(IndexEntry& entry, std::span<const float> row) {
  ++step_.record_count;
  if (row.empty()) {
    entry.row = std::nullopt;
  } else {
    entry.row = step_.row_count++;
    MUSTER_TRY(vectors_->append(row));
  }
  append_index_line(entry, index_buffer_);
  if (index_buffer_.size() >= kIndexBuffer) return flush_index();
  return Done{};
}

Status RunOutput::flush_index() {
  MUSTER_TRY(write_all(index_.get(), index_buffer_, files_.index_part));
  index_hash_.update(index_buffer_);
  step_.index_size += index_buffer_.size();
  index_buffer_.clear();
  return Done{};
}

Status RunOutput::commit(const std::string& records_hash) {
  MUSTER_TRY(flush_index());
  if (::fdatasync(index_.get()) != 0)
    return system_error(files_.index_part.string(), "sync", errno);
  const auto place = MUSTER_TRY(vectors_->sync());
  step_.vectors_size = place.size;
  step_.vectors_hash = place.rows_hash;
  step_.index_hash = std::exchange(index_hash_, Hash128()).hex();
  step_.records_hash = records_hash;
  return journal_->append(step_);
}

Status RunOutput::finish(const std::string& about) {
  MUSTER_TRY(flush_index());
  if (::fsync(index_.get()) != 0) return system_error(files_.index_part.string(), "sync", errno);
  MUSTER_TRY(vectors_->finish());
  MUSTER_TRY(write_file_atomically(files_.about, about));
  MUSTER_TRY(rename_file(files_.index_part, files_.index));
  MUSTER_TRY(rename_file(files_.out_part, files_.out));
  if (::unlink(files_.journal.c_str()) != 0)
    return system_error(files_.journal.string(), "remove", errno);
  return sync_folder(files_.out.parent_path());
}

}  // namespace muster
