// Vectors, index and record of a finished run, and whether they belong together. Files that do not
// belong together would give wrong texts for right vectors, so hashes and counts are compared when
// they are opened. While a search goes on, only size and time of the vectors are looked at again,
// which costs one system call.

#include "jobs/search_corpus.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <utility>

#include "base/file.h"
#include "dataset/vector_writer.h"
#include "jobs/output_lock.h"
#include "jobs/run_output.h"

namespace muster {
namespace {

// "notes.txt" is more likely what somebody wants to search than a name of vectors.
Status check_name(const std::filesystem::path& out) {
  std::error_code ignored;
  if (vector_format_of(out) || !std::filesystem::exists(out, ignored)) return Done{};
  auto vectors = out;
  vectors.replace_extension(".npy");
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{0} holds no vectors (.npy, .safetensors or .jsonl): make them with "
                           "`muster embed MODEL {0} -o {1}`, then search {1}",
                           out.string(), vectors.string())};
}

Result<std::unique_ptr<VectorFile>> open_vectors(const std::filesystem::path& out) {
  MUSTER_TRY(check_name(out));
  auto vectors = VectorFile::open(out);
  auto part = out;
  part += ".part";
  if (!vectors && vectors.error().kind == ErrorKind::NotFound && std::filesystem::exists(part)) {
    return Error{ErrorKind::NotFound,
                 fmt::format("{} is not finished: go on with muster embed --resume", out.string())};
  }
  return vectors;
}

// The record, once the files are seen to be its own; nullopt for vectors that muster did not write.
Result<std::optional<OutputRecord>> own_record(const std::filesystem::path& out,
                                               const VectorFile& vectors, bool may_lack_record) {
  const auto path = record_path_of(out);
  auto record = read_output_record(path);
  if (record) {
    MUSTER_TRY(check_output(*record, out));
    if (record->row_count != vectors.row_count() || record->dim != vectors.dim()) {
      return Error{ErrorKind::Corrupt, fmt::format("{}: [{} x {}], and {} says [{} x {}]",
                                                   out.string(), vectors.row_count(), vectors.dim(),
                                                   path.string(), record->row_count, record->dim)};
    }
    return std::optional(*std::move(record));
  }
  if (record.error().kind != ErrorKind::NotFound) return record.error();
  if (has_names_of_earlier_version(out)) {
    return Error{ErrorKind::NotFound,
                 fmt::format("{} is missing: the files beside {} have the names of an earlier "
                             "version, which does not tell whose they are: run muster embed again",
                             path.string(), out.string())};
  }
  if (may_lack_record) return std::optional<OutputRecord>();
  return Error{ErrorKind::NotFound,
               fmt::format("{} would say which model made these vectors, and it is missing; muster "
                           "search can be told with --model",
                           path.string())};
}

struct FileState {
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t changed_ns = 0;

  bool operator==(const FileState&) const = default;
};

FileState state_of(const struct stat& info) {
  constexpr std::int64_t kNs = 1'000'000'000;
  return {info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size),
          info.st_mtim.tv_sec * kNs + info.st_mtim.tv_nsec};
}

Result<FileState> state_of(const UniqueFd& fd, const std::filesystem::path& path) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return system_error(path.string(), "read", errno);
  return state_of(info);
}

// Which files the names of vectors, index and record lead to now. All three are opened by name, and
// more than once: a run that ends meanwhile would mix its own with those before.
std::array<FileState, 3> states_of(const std::filesystem::path& out) {
  std::array<FileState, 3> states;
  const std::array paths{out, index_path_of(out), record_path_of(out)};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    struct stat info {};
    if (::stat(paths[i].c_str(), &info) == 0) states[i] = state_of(info);
  }
  return states;
}

}  // namespace

Result<std::unique_ptr<SearchCorpus>> SearchCorpus::open(const std::filesystem::path& out,
                                                         bool may_lack_record) {
  std::unique_ptr<SearchCorpus> corpus(new SearchCorpus());
  const auto read = [&]() -> Status {
    const auto before = states_of(out);
    corpus->vectors_ = MUSTER_TRY(open_vectors(out));
    auto file = MUSTER_TRY(open_regular_file(out, O_RDONLY));
    const auto state = MUSTER_TRY(state_of(file.fd, out));
    corpus->fd_ = std::move(file.fd);
    corpus->size_ = state.size;
    corpus->changed_ns_ = state.changed_ns;
    corpus->record_ = MUSTER_TRY(own_record(out, *corpus->vectors_, may_lack_record));
    corpus->index_ = MUSTER_TRY(IndexFile::open(index_path_of(out), corpus->vectors_->row_count()));
    if (states_of(out) == before) return Done{};
    return Error{ErrorKind::Unavailable,
                 fmt::format("{} was replaced while it was read: try again", out.string())};
  };
  if (const auto done = read(); !done) {
    // What is missing, or belongs to two runs at once, may be on its way.
    MUSTER_TRY(OutputLock::check_free(RunFiles(out).lock, out));
    return done.error();
  }
  corpus->out_ = out;
  corpus->field_names_ = corpus->record_ ? corpus->record_->kept : std::vector<std::string>();
  if (corpus->field_names_.empty()) corpus->field_names_ = corpus->index_->fields().names();
  return corpus;
}

Result<std::shared_ptr<const FieldFilter>> SearchCorpus::parse_filter(
    std::string_view condition) const {
  auto parsed = MUSTER_TRY(FieldFilter::parse(condition, field_names_));
  MUSTER_TRY(parsed->check(index_->fields()));
  return parsed;
}

Result<std::shared_ptr<const RowFilter>> SearchCorpus::filter(std::string_view condition) const {
  auto parsed = MUSTER_TRY(parse_filter(condition));
  return std::shared_ptr<const RowFilter>(
      std::make_shared<RowFilter>(std::move(parsed), index_->fields()));
}

Status SearchCorpus::check_unchanged() const {
  const auto state = MUSTER_TRY(state_of(fd_, out_));
  if (state.size == size_ && state.changed_ns == changed_ns_) return Done{};
  return Error{ErrorKind::Corrupt,
               fmt::format("{} was written into since it was opened", out_.string())};
}

}  // namespace muster
