// A log that is appended to and never rewritten: one line for the identity of the run, one for each
// step, one at the end. Each line carries its checksum and is synced before the step counts, so a
// crash can tear the last line alone; a broken line anywhere else is damage and is refused. The
// file comes into being by renaming, with its first line in it: there is no journal without an
// identity.

#include "dataset/run_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/hash.h"
#include "base/unique_fd.h"
#include "dataset/checked_line.h"
#include "dataset/own_file.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// 1 had no line at the end, and knew the index by another name.
constexpr int kVersion = 2;
constexpr const char* kVersionKey = "muster_run";
constexpr const char* kFinishedKey = "finished";

// A path may hold bytes that are not UTF-8; they are replaced, not thrown at.
std::string line_of(const Json& content) {
  return checked_line(content.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// The content of such a line (without its end); nullopt when its checksum is not right.
std::optional<Json> read_checked_line(std::string_view line) {
  if (!is_checked_line(line)) return std::nullopt;
  auto content = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  return content.is_object() ? std::optional(std::move(content)) : std::nullopt;
}

Json identity_json(const RunIdentity& identity) {
  Json entries = Json::array();
  for (const auto& [name, value] : identity) {
    entries.push_back(Json::array({name, value}));
  }
  return Json{{kVersionKey, kVersion}, {"identity", std::move(entries)}};
}

// What a reader of the journal gets back for this identity.
RunIdentity as_stored(const Json& line) {
  RunIdentity identity;
  const auto entries = line.value("identity", Json::array());
  for (const auto& entry : entries) {
    if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
      identity.emplace_back(entry[0].get<std::string>(), entry[1].get<std::string>());
    }
  }
  return identity;
}

Json step_json(const RunStep& step) {
  return Json{{"records", step.record_count},      {"rows", step.row_count},
              {"vectors_size", step.vectors_size}, {"index_size", step.index_size},
              {"records_hash", step.records_hash}, {"vectors_hash", step.vectors_hash},
              {"index_hash", step.index_hash}};
}

std::optional<RunStep> read_step(const Json& line) {
  RunStep step;
  const auto number = [&](const char* key, std::uint64_t& out) {
    const auto found = line.find(key);
    if (found == line.end() || !found->is_number_unsigned()) return false;
    out = found->get<std::uint64_t>();
    return true;
  };
  const auto text = [&](const char* key, std::string& out) {
    const auto found = line.find(key);
    if (found == line.end() || !found->is_string()) return false;
    out = found->get<std::string>();
    return true;
  };
  const bool is_whole =
      number("records", step.record_count) && number("rows", step.row_count) &&
      number("vectors_size", step.vectors_size) && number("index_size", step.index_size) &&
      text("records_hash", step.records_hash) && text("vectors_hash", step.vectors_hash) &&
      text("index_hash", step.index_hash);
  return is_whole ? std::optional(std::move(step)) : std::nullopt;
}

class FileJournal final : public RunJournal {
 public:
  // `ends`: where the identity line and each step end in the file.
  FileJournal(UniqueFd fd, std::filesystem::path path, std::vector<std::uint64_t> ends)
      : fd_(std::move(fd)), path_(std::move(path)), ends_(std::move(ends)) {}

  Status append(const RunStep& step) override { return append_line(step_json(step)); }

  Status append_finished() override { return append_line(Json{{kFinishedKey, true}}); }

  Status truncate(std::size_t count) override {
    MUSTER_CHECK(count < ends_.size());
    ends_.resize(count + 1);
    MUSTER_TRY(cut());
    return make_durable();
  }

  // Cuts off what stands behind the last line that counts.
  Status cut() {
    if (::ftruncate(fd_.get(), static_cast<off_t>(ends_.back())) != 0) {
      return system_error(path_.string(), "cut", errno);
    }
    return Done{};
  }

 private:
  Status append_line(const Json& content) {
    const std::string line = line_of(content);
    if (auto written = write_all(fd_.get(), line, path_); !written) {
      // A torn line may stand at the end only: take it away, so that a later one can follow.
      MUSTER_TRY(cut());
      return written;
    }
    ends_.push_back(ends_.back() + line.size());
    return make_durable();
  }

  Status make_durable() {
    if (::fsync(fd_.get()) != 0) {
      return system_error(path_.string(), "sync", errno);
    }
    return Done{};
  }

  UniqueFd fd_;  // O_APPEND: a cut moves the place of writing too
  std::filesystem::path path_;
  std::vector<std::uint64_t> ends_;
};

Result<std::unique_ptr<FileJournal>> open_to_append(const std::filesystem::path& path,
                                                    std::vector<std::uint64_t> ends) {
  auto fd = MUSTER_TRY(open_own_file(path, O_WRONLY | O_APPEND));
  return std::make_unique<FileJournal>(std::move(fd), path, std::move(ends));
}

bool is_of_this_version(const Json& identity_line) {
  const auto version = identity_line.find(kVersionKey);
  return version != identity_line.end() && *version == kVersion;
}

struct Content {
  JournalContent journal;
  std::vector<std::uint64_t> ends;  // of the identity line and of each step
};

// The kinds of lines, in the order in which they may stand.
bool take_line(const Json& line, Content& content) {
  if (content.ends.empty()) {
    if (!line.contains("identity")) return false;
    content.journal.identity = as_stored(line);
    return true;
  }
  if (content.journal.is_finished) return false;
  if (line.contains(kFinishedKey)) {
    content.journal.is_finished = true;
    return true;
  }
  auto step = read_step(line);
  if (!step) return false;
  content.journal.steps.push_back(*std::move(step));
  return true;
}

// A last line without its end or with a wrong checksum is one that was being written when the
// machine stopped; anywhere else it is damage.
Result<Content> parse_journal(std::string_view text, const std::filesystem::path& path) {
  Content content;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const auto end = text.find('\n', begin);
    const bool is_last = end == std::string_view::npos || end + 1 == text.size();
    const auto line = end == std::string_view::npos
                          ? std::nullopt
                          : read_checked_line(text.substr(begin, end - begin));
    if (line && content.ends.empty() && !is_of_this_version(*line)) {
      return Error{
          ErrorKind::Unsupported,
          fmt::format("{}: written by another version of muster: start anew with --restart",
                      path.string())};
    }
    if (!line || !take_line(*line, content)) {
      if (is_last) break;
      return Error{ErrorKind::Corrupt,
                   fmt::format("{}:{}: a broken line in the journal: start anew with --restart",
                               path.string(), content.ends.size() + 1)};
    }
    begin = end + 1;
    content.ends.push_back(begin);
  }
  if (content.ends.empty()) {
    return Error{ErrorKind::NotFound,
                 fmt::format("{}: no run to resume: the journal is empty", path.string())};
  }
  return content;
}

}  // namespace

const std::string* value_in(const RunIdentity& identity, std::string_view name) {
  const auto found = std::find_if(identity.begin(), identity.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == identity.end() ? nullptr : &found->second;
}

std::optional<std::string> identity_difference(const RunIdentity& then,
                                               const RunIdentity& now_as_given) {
  // Compared as a reader would get it back: bytes that are not UTF-8 were replaced when it was
  // written.
  const auto now = as_stored(Json::parse(line_of(identity_json(now_as_given))));
  const auto shown = [](const std::string* value) {
    return value == nullptr ? std::string("not set") : *value;
  };
  RunIdentity all = now;
  all.insert(all.end(), then.begin(), then.end());
  for (const auto& entry : all) {
    const auto& name = entry.first;
    const auto* old_value = value_in(then, name);
    const auto* new_value = value_in(now, name);
    const bool is_same = old_value != nullptr && new_value != nullptr && *old_value == *new_value;
    if (!is_same) {
      return fmt::format("{} was {} and is now {}", name, shown(old_value), shown(new_value));
    }
  }
  return std::nullopt;
}

// In one order, as a reader gets it back: an identity from a journal gives what the run itself did.
std::string identity_hash(const RunIdentity& identity) {
  auto stored = as_stored(Json::parse(line_of(identity_json(identity))));
  std::sort(stored.begin(), stored.end());
  return hash_hex(identity_json(stored).dump());
}

Result<JournalContent> RunJournal::read(const std::filesystem::path& path) {
  const std::string text = MUSTER_TRY(read_file(path));
  return MUSTER_TRY(parse_journal(text, path)).journal;
}

std::filesystem::path RunJournal::part_path_of(const std::filesystem::path& path) {
  auto part = path;
  return part += ".part";
}

Result<std::unique_ptr<RunJournal>> RunJournal::create(const std::filesystem::path& path,
                                                       const RunIdentity& identity) {
  const std::string line = line_of(identity_json(identity));
  const auto part = part_path_of(path);
  const auto fd = MUSTER_TRY(open_own_file(part, O_WRONLY | O_CREAT | O_TRUNC));
  auto written = write_all(fd.get(), line, path);
  if (written && ::fsync(fd.get()) != 0) written = system_error(path.string(), "sync", errno);
  if (written && ::rename(part.c_str(), path.c_str()) != 0) {
    written = system_error(path.string(), "rename", errno);
  }
  if (!written) {
    ::unlink(part.c_str());
    return written.error();
  }
  MUSTER_TRY(sync_folder(path.parent_path()));
  return std::unique_ptr<RunJournal>(MUSTER_TRY(open_to_append(path, {line.size()})));
}

Result<RunJournal::Reopened> RunJournal::reopen(const std::filesystem::path& path,
                                                const RunIdentity& identity) {
  const std::string text = MUSTER_TRY(read_file(path));
  auto content = MUSTER_TRY(parse_journal(text, path));
  if (const auto changed = identity_difference(content.journal.identity, identity)) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("cannot resume {}: {}", path.filename().string(), *changed)};
  }
  auto journal = MUSTER_TRY(open_to_append(path, std::move(content.ends)));
  MUSTER_TRY(journal->cut());
  return Reopened{std::move(journal), std::move(content.journal.steps)};
}

}  // namespace muster
