// Replies wait here for their turn. There are few of them beside what it takes to compute one, so
// the whole file is written anew: nothing has to be moved, and whatever a crash tears is a part
// that nobody reads.

#include "jobs/replies_ahead.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "dataset/checked_line.h"
#include "dataset/own_file.h"
#include "jobs/input_identity.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;
using Replies = std::map<std::uint64_t, AheadReply>;

constexpr int kVersion = 1;
constexpr const char* kVersionKey = "muster_ahead";

std::string line_of(const Json& content) {
  return checked_line(content.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string line_of(std::uint64_t number, const AheadReply& reply) {
  return line_of(Json{{"record", number},
                      {"of", reply.content_hash},
                      {"prompt_tokens", reply.prompt_token_count},
                      {"completion_tokens", reply.reply_token_count},
                      {"reply", reply.members}});
}

// nullopt for a line that is torn or damaged.
std::optional<Json> content_of_line(std::string_view line) {
  if (!is_checked_line(line)) return std::nullopt;
  auto content = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  return content.is_object() ? std::optional(std::move(content)) : std::nullopt;
}

template <typename Number>
bool take_number(const Json& line, const char* key, Number& out) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number_unsigned()) return false;
  out = found->get<Number>();
  return true;
}

bool take_text(const Json& line, const char* key, std::string& out) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_string()) return false;
  out = found->get<std::string>();
  return true;
}

// False for a head that was never whole, or is of another run.
Result<bool> is_of_run(const std::optional<Json>& head, const std::string& run,
                       const std::filesystem::path& path) {
  if (!head || !head->contains(kVersionKey)) return false;
  if (head->at(kVersionKey) != kVersion) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}: written by another version of muster: start anew with --restart",
                             path.string())};
  }
  std::string whose;
  return take_text(*head, "run", whose) && whose == run;
}

Result<Replies> read_replies(const std::filesystem::path& path, const std::string& run,
                             std::uint64_t record_count) {
  Replies replies;
  const auto text = read_file(path);
  if (!text && text.error().kind == ErrorKind::NotFound) return replies;
  if (!text) return text.error();
  bool is_head = true;
  for (std::string_view left = *text; !left.empty();) {
    const auto size = std::min(left.find('\n'), left.size());
    const auto line = content_of_line(left.substr(0, size));
    left.remove_prefix(std::min(size + 1, left.size()));
    if (std::exchange(is_head, false)) {
      if (!MUSTER_TRY(is_of_run(line, run, path))) return replies;
      continue;
    }
    AheadReply reply;
    std::uint64_t number = 0;
    const bool is_whole = line && take_number(*line, "record", number) &&
                          take_text(*line, "of", reply.content_hash) &&
                          take_number(*line, "prompt_tokens", reply.prompt_token_count) &&
                          take_number(*line, "completion_tokens", reply.reply_token_count) &&
                          take_text(*line, "reply", reply.members);
    if (is_whole && number >= record_count) replies.insert_or_assign(number, std::move(reply));
  }
  return replies;
}

std::string content_hash_of(const WindowRecord& record) {
  Hash128 hash;
  hash_record(hash, content_of(record));
  return hash.hex();
}

}  // namespace

RepliesAhead::RepliesAhead(const RunFiles& files, std::string run)
    : path_(files.ahead), part_(files.ahead_part), run_(std::move(run)) {}

Result<std::unique_ptr<RepliesAhead>> RepliesAhead::reopen(const RunFiles& files, std::string run,
                                                           std::uint64_t record_count) {
  auto ahead = std::make_unique<RepliesAhead>(files, std::move(run));
  ahead->replies_ = MUSTER_TRY(read_replies(ahead->path_, ahead->run_, record_count));
  for (const auto& [number, reply] : ahead->replies_) ahead->in_file_.insert(number);
  return ahead;
}

bool RepliesAhead::take(WindowRecord& record) {
  const auto found = replies_.find(record.number);
  if (found == replies_.end()) return false;
  const auto& reply = found->second;
  if (reply.content_hash != content_hash_of(record)) {
    in_file_.erase(record.number);
    replies_.erase(found);
    return false;
  }
  record.entry.token_count = reply.prompt_token_count;
  record.result.reply = reply.members;
  record.result.reply_token_count = reply.reply_token_count;
  return true;
}

// A reply stays here until it is where it belongs for good, which is later than it leaves the
// window.
Status RepliesAhead::keep(std::uint64_t durable_count,
                          std::span<const WindowRecord* const> waiting) {
  replies_.erase(replies_.begin(), replies_.lower_bound(durable_count));
  in_file_.erase(in_file_.begin(), in_file_.lower_bound(durable_count));
  for (const auto* record : waiting) {
    if (record->result.reply.empty() || replies_.count(record->number) > 0) continue;
    replies_.emplace(record->number,
                     AheadReply{.content_hash = content_hash_of(*record),
                                .prompt_token_count = record->entry.token_count,
                                .reply_token_count = record->result.reply_token_count,
                                .members = record->result.reply});
  }
  if (in_file_.size() == replies_.size()) return Done{};
  MUSTER_TRY(write());
  for (const auto& [number, reply] : replies_) in_file_.insert(number);
  return Done{};
}

Status RepliesAhead::write() const {
  const auto fd = MUSTER_TRY(open_own_file(part_, O_WRONLY | O_CREAT | O_TRUNC));
  auto content = line_of(Json{{kVersionKey, kVersion}, {"run", run_}});
  Status written = Done{};
  for (const auto& [number, reply] : replies_) {
    content += line_of(number, reply);
    if (written) written = write_all(fd.get(), std::exchange(content, {}), part_);
  }
  if (written && ::fsync(fd.get()) != 0) written = system_error(part_.string(), "sync", errno);
  if (written && ::rename(part_.c_str(), path_.c_str()) != 0) {
    written = system_error(path_.string(), "rename", errno);
  }
  if (!written) {
    ::unlink(part_.c_str());
    return written;
  }
  return sync_folder(path_.parent_path());
}

Result<std::uint64_t> count_ahead_replies(const std::filesystem::path& path, const std::string& run,
                                          std::uint64_t record_count) {
  const auto replies = MUSTER_TRY(read_replies(path, run, record_count));
  return std::uint64_t{replies.size()};
}

}  // namespace muster
