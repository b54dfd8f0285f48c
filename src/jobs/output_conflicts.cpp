// An output must not replace what is still needed: an input, or a file of the model. Files are
// compared by device and inode and not by name, since a link or another spelling of a path leads to
// the same file. All is looked at before the run begins.

#include "jobs/output_conflicts.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <system_error>
#include <utility>

#include "dataset/byte_source.h"

namespace muster {
namespace {

constexpr std::size_t kModelFilesMost = 10'000;  // a folder of that many is no model's

using FileKey = std::pair<dev_t, ino_t>;

std::optional<FileKey> key_of(const struct stat& info) {
  // A pipe or a device cannot be replaced by mistake: renaming leaves it whole.
  if (!S_ISREG(info.st_mode)) return std::nullopt;
  return FileKey(info.st_dev, info.st_ino);
}

std::optional<FileKey> key_of(const std::filesystem::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? key_of(info) : std::nullopt;
}

std::optional<FileKey> key_of_input(const std::string& input) {
  struct stat info {};
  if (input != "-") return key_of(std::filesystem::path(input));
  return ::fstat(STDIN_FILENO, &info) == 0 ? key_of(info) : std::nullopt;
}

// Noticed at the first write, or at the last rename, it would be after hours of work.
Status check_are_files(const RunFiles& files) {
  for (const auto& path : files.all()) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) continue;
    if (path == files.out) {
      return Error{
          ErrorKind::InvalidArgument,
          fmt::format("{}: is there and no file, so no output can replace it", path.string())};
    }
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: is there and no file, and {} needs that name: remove it, or name "
                             "another output with -o",
                             path.string(), files.out.filename().string())};
  }
  return Done{};
}

Status check_place(const RunFiles& files) {
  const auto folder = files.out.parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder)) {
    return Error{ErrorKind::NotFound,
                 fmt::format("no such folder for the output: {}", folder.string())};
  }
  const auto place = folder.empty() ? std::filesystem::path(".") : folder;
  if (::access(place.c_str(), W_OK) != 0) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: no output can be written into its folder: {}: name another place "
                             "with -o",
                             files.out.string(), std::generic_category().message(errno))};
  }
  MUSTER_TRY(check_are_files(files));
  if (files.out.filename().string().ends_with(".index.jsonl")) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: the ending .index.jsonl is that of an index: name the output "
                             "otherwise",
                             files.out.string())};
  }
  return Done{};
}

// Outputs of earlier runs in a model's folder are no files of the model. The record vouches for
// what has its final name, the journal for what is unfinished; nobody writes either by chance.
bool is_of_earlier_run(const RunFiles& files, const std::filesystem::path& path) {
  // Each says of itself what it is: OutputLock takes no other file, and a journal comes by
  // renaming.
  if (path == files.lock) return true;
  const bool is_final = path == files.out || path == files.index || path == files.about;
  if (is_final && read_output_record(files.about)) return true;
  const auto journal = RunJournal::read(files.journal);
  return journal && (!is_final || journal->is_finished);
}

std::optional<std::filesystem::path> model_file_of(const std::filesystem::path& folder,
                                                   const FileKey& key) {
  if (key_of(folder) == key) return folder;  // a model of one file
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(folder, error);
  std::size_t count = 0;
  for (; !error && entry != std::filesystem::recursive_directory_iterator() &&
         count < kModelFilesMost;
       entry.increment(error), ++count) {
    if (key_of(entry->path()) == key) return entry->path();
  }
  return std::nullopt;
}

}  // namespace

Status check_conflicts(const RunFiles& files, const RunSources& sources) {
  MUSTER_TRY(check_place(files));
  std::map<FileKey, std::string> inputs;
  for (const auto& input : sources.inputs) {
    if (const auto key = key_of_input(input)) inputs.emplace(*key, input_name(input));
  }
  for (const auto& path : files.all()) {
    const auto key = key_of(path);
    if (!key) continue;
    if (const auto found = inputs.find(*key); found != inputs.end()) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{} would be overwritten, and it is an input ({}): name another "
                               "file with -o",
                               path.string(), found->second)};
    }
    if (!sources.model_folder) continue;
    const auto file = model_file_of(*sources.model_folder, *key);
    if (file && !is_of_earlier_run(files, path)) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{} would be overwritten, and it is a file of the model ({}): name "
                               "another file with -o",
                               path.string(), file->string())};
    }
  }
  return Done{};
}

Status check_no_links(const RunFiles& files) {
  for (const auto& path : files.all()) {
    std::error_code ignored;
    if (!std::filesystem::is_symlink(path, ignored)) continue;
    const auto target = std::filesystem::read_symlink(path, ignored);
    const bool is_out = path == files.out;
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: a link to {}, and no link is written through or replaced: remove "
                             "it, or name {} with -o",
                             path.string(), target.string(),
                             is_out ? "the file that is meant" : "another output")};
  }
  return Done{};
}

}  // namespace muster
