// The names of a run, and how it leaves them: all final, or none of its own. OUT gets its final
// name last: where it is there, what belongs to it is there too. After a crash between two renames
// --resume does the rest, because the journal says that only names are missing.

#include "jobs/run_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"
#include "dataset/vector_file.h"

namespace muster {
namespace {

std::filesystem::path with_ending(std::filesystem::path path, const char* ending) {
  path += ending;
  return path;
}

Error part_is_gone(const std::filesystem::path& part) {
  return Error{ErrorKind::Corrupt,
               fmt::format("{}: gone, and the journal speaks of it: start anew with --restart",
                           part.string())};
}

// A part that is not there has its final name already.
Status publish_part(const std::filesystem::path& part, const std::filesystem::path& whole) {
  if (part.empty()) return Done{};
  if (::rename(part.c_str(), whole.c_str()) == 0) return Done{};
  if (errno != ENOENT) return system_error(whole.string(), "rename", errno);
  if (!std::filesystem::exists(whole)) return part_is_gone(part);
  return Done{};
}

}  // namespace

RunFiles::RunFiles(const std::filesystem::path& out_path, OutputKind out_kind)
    : kind(out_kind),
      out(out_path),
      about(record_path_of(out_path)),
      out_part(with_ending(out, ".part")),
      about_part(with_ending(about, ".part")),
      journal(with_ending(out, ".journal")),
      journal_part(RunJournal::part_path_of(journal)),
      ahead(with_ending(out, ".ahead")),
      lock(with_ending(out, ".lock")) {
  if (kind == OutputKind::Replies) {
    ahead_part = with_ending(ahead, ".part");
  } else {
    index = index_path_of(out);
    index_part = with_ending(index, ".part");
  }
}

std::vector<std::filesystem::path> RunFiles::all() const {
  std::vector<std::filesystem::path> paths{out,        index,      about,   out_part,
                                           index_part, about_part, journal, journal_part,
                                           ahead,      ahead_part, lock};
  std::erase_if(paths, [](const auto& path) { return path.empty(); });
  return paths;
}

Result<RunResumption> find_resumption(const RunFiles& files, std::uint64_t header_size,
                                      const RunIdentity& identity) {
  auto reopened = MUSTER_TRY(RunJournal::reopen(files.journal, identity));
  for (const auto& part : {files.out_part, files.index_part}) {
    if (reopened.steps.empty() || part.empty()) continue;
    if (!std::filesystem::exists(part)) return part_is_gone(part);
  }
  const RunParts parts{files.out_part, header_size, files.index_part};
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
  ::unlink(files.ahead_part.c_str());
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
                           files.ahead_part, files.journal_part, files.journal}) {
    ::unlink(path.c_str());  // of an empty name none
  }
}

}  // namespace muster
