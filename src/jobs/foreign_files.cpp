// Renaming replaces without a question, so what lies under the names of a run is looked at before.
// A name says nothing: `notes.jsonl` may be the work of years. Vectors and index do not say of
// themselves who made them, and the record does, with their sizes; hashing them would read
// everything for a file that is replaced anyway.

#include "jobs/foreign_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "base/file.h"
#include "base/positioned_io.h"

namespace muster {
namespace {

// Source: docs/formats/vectors.md, docs/formats/replies.md.
constexpr std::string_view kJournal = R"({"muster_run":)";
constexpr std::string_view kRecord = "{\n  \"muster_output\":";
constexpr std::string_view kRowsAhead = "MSTAHEAD";
constexpr std::string_view kRepliesAhead = R"({"muster_ahead":)";

/// A file that says what it is, and how it does.
struct OwnBeginning {
  std::filesystem::path path;
  std::string_view beginning;
};

// Nothing is lost with an empty file.
bool has_content(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return !error && size > 0;
}

Error foreign(const std::filesystem::path& path, const std::string& what) {
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{}: is there, and {}: remove it, or name another output with -o",
                           path.string(), what)};
}

Error no_file_of_a_run(const std::filesystem::path& path) {
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{}: is there and no file of a run of muster's: remove it, or name "
                           "another output with -o",
                           path.string())};
}

// A process that was killed may have written a part of it; and a file that became longer and did
// not get its bytes before the power went reads as zeros.
Result<bool> may_begin_with(const std::filesystem::path& path, std::string_view beginning) {
  const auto file = MUSTER_TRY(open_regular_file(path, O_RDONLY));
  std::array<char, 65536> room{};
  std::uint64_t at = 0;
  while (true) {
    const auto size =
        MUSTER_TRY(read_at(file.fd.get(), std::as_writable_bytes(std::span(room)), at, path));
    const auto piece = std::string_view(room.data(), size);
    if (at == 0 && beginning.starts_with(piece.substr(0, beginning.size()))) return true;
    if (piece.empty()) return true;
    if (piece.find_first_not_of('\0') != std::string_view::npos) return false;
    at += size;
  }
}

Status check_beginning(const std::filesystem::path& path, std::string_view beginning) {
  if (!has_content(path)) return Done{};
  return MUSTER_TRY(may_begin_with(path, beginning)) ? Status(Done{}) : no_file_of_a_run(path);
}

Status check_vouched(const std::filesystem::path& path, const RunFiles& files,
                     const std::optional<std::uint64_t>& size_in_record) {
  if (!has_content(path)) return Done{};
  const auto record = files.about.filename().string();
  if (!size_in_record) return foreign(path, fmt::format("no {} says that muster made it", record));
  std::error_code ignored;
  if (std::filesystem::file_size(path, ignored) == *size_in_record) return Done{};
  return foreign(path, fmt::format("not the file that {} speaks of", record));
}

// What has its final name.
Status check_finished(const RunFiles& files) {
  const auto journal = RunJournal::read(files.journal);
  std::error_code ignored;
  const auto& first_part = files.index_part.empty() ? files.about_part : files.index_part;
  const bool has_no_name = std::filesystem::exists(first_part, ignored);
  // It was looked at before; which of the others are given already nobody knows.
  if (journal && journal->is_finished && !has_no_name) return Done{};
  const auto record = read_output_record(files.about);
  if (!record && has_content(files.about)) {
    MUSTER_TRY(check_beginning(files.about, kRecord));
    return record.error();
  }
  if (record && record->kind != files.kind && has_content(files.out)) {
    return foreign(files.out, fmt::format("it holds {}", output_kind_words(record->kind)));
  }
  using Size = std::optional<std::uint64_t>;
  MUSTER_TRY(check_vouched(files.out, files, record ? Size(record->vectors_size) : Size()));
  return check_vouched(files.index, files, record ? Size(record->index_size) : Size());
}

}  // namespace

Status check_none_foreign(const RunFiles& files) {
  const auto ahead = files.kind == OutputKind::Vectors ? kRowsAhead : kRepliesAhead;
  for (const auto& [path, beginning] :
       {OwnBeginning{files.journal, kJournal}, OwnBeginning{files.journal_part, kJournal},
        OwnBeginning{files.about_part, kRecord}, OwnBeginning{files.ahead, ahead},
        OwnBeginning{files.ahead_part, ahead}}) {
    MUSTER_TRY(check_beginning(path, beginning));
  }
  return check_finished(files);
}

}  // namespace muster
