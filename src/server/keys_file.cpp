// A new entry is appended as text, and the result is parsed again: only when it reads back as the
// old keys and the new one are the comments of the file kept. Otherwise all is written anew. The
// lock is a file beside the keys, since the keys file is replaced on every write and a lock on a
// replaced file guards nothing.

#include "server/keys_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/random_bits.h"
#include "base/text.h"

namespace muster {
namespace {

std::string file_text(const std::vector<ApiKey>& keys) {
  if (keys.empty()) return "keys: []\n";
  std::string text = "keys:\n";
  for (const auto& key : keys) text += keys_file_entry(key);
  return text;
}

// The count guards against an entry that the text before it swallows, such as an open list or a
// block of text.
bool holds_last(const Result<std::vector<ApiKey>>& keys, std::size_t count, const ApiKey& last) {
  return keys && keys->size() == count && keys->back().sha256 == last.sha256 &&
         keys->back().name == last.name;
}

}  // namespace

std::string make_api_key() {
  std::array<std::uint64_t, 4> bits{};
  fill_random(std::as_writable_bytes(std::span(bits)));
  return fmt::format("muster-{:016x}{:016x}{:016x}{:016x}", bits[0], bits[1], bits[2], bits[3]);
}

std::string day_text(double unix_seconds) {
  using namespace std::chrono;
  const sys_seconds time{std::chrono::seconds(static_cast<std::int64_t>(unix_seconds))};
  const year_month_day date(floor<days>(time));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

std::string keys_file_entry(const ApiKey& key) {
  std::string digest;
  for (const auto byte : key.sha256) digest += fmt::format("{:02x}", std::to_integer<int>(byte));
  std::vector<std::string_view> scopes;
  for (std::size_t i = 0; i < kKeyScopeCount; ++i) {
    if (key.scopes[i]) scopes.push_back(key_scope_name(static_cast<KeyScope>(i)));
  }
  std::string text = fmt::format("  - name: {}\n    sha256: {}\n    scopes: [{}]\n", key.name,
                                 digest, fmt::join(scopes, ", "));
  const auto& limits = key.limits;
  if (limits.requests_per_minute) {
    text += fmt::format("    requests_per_minute: {}\n", *limits.requests_per_minute);
  }
  if (limits.tokens_per_minute) {
    text += fmt::format("    tokens_per_minute: {}\n", *limits.tokens_per_minute);
  }
  if (limits.requests_at_once) {
    text += fmt::format("    requests_at_once: {}\n", *limits.requests_at_once);
  }
  if (key.expires_unix_seconds) {
    text += fmt::format("    expires: {}\n", day_text(*key.expires_unix_seconds));
  }
  return text;
}

Result<std::string> with_api_key(const std::string& file_name, std::string_view text,
                                 const ApiKey& key) {
  std::vector<ApiKey> keys;
  if (!trim(text).empty()) keys = MUSTER_TRY(parse_api_keys(file_name, text));
  for (const auto& known : keys) {
    if (known.name == key.name) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{}: a key named {} is there already", file_name, key.name)};
    }
  }
  std::string appended(text);
  if (!appended.empty() && appended.back() != '\n') appended += '\n';
  appended += keys_file_entry(key);
  keys.push_back(key);
  return holds_last(parse_api_keys(file_name, appended), keys.size(), key) ? appended
                                                                           : file_text(keys);
}

Result<std::string> without_api_key(const std::string& file_name, std::string_view text,
                                    std::string_view name) {
  const auto keys = MUSTER_TRY(parse_api_keys(file_name, text));
  std::vector<ApiKey> kept;
  std::vector<std::string> names;
  for (const auto& key : keys) {
    names.push_back(key.name);
    if (key.name != name) kept.push_back(key);
  }
  if (kept.size() == keys.size()) {
    const auto nearest = nearest_name(name, names);
    return Error{ErrorKind::NotFound,
                 fmt::format("{}: there is no key {}{}", file_name, name,
                             nearest ? fmt::format("; did you mean {}?", *nearest) : "")};
  }
  return file_text(kept);
}

Result<KeysFileLock> KeysFileLock::take(const std::filesystem::path& path) {
  // Whatever links lead to the file, there is one lock.
  const auto beside = MUSTER_TRY(followed_path(path)).string() + ".lock";
  // Empty, and of use to whoever may write the keys: what it is good for is to be locked.
  constexpr mode_t kMode = 0660;
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  UniqueFd fd(::open(beside.c_str(), O_RDWR | O_CREAT | kFlags, kMode));
  // Somebody else of the group made it; the lock wants no more than an open file.
  if (!fd.is_open() && errno == EACCES) fd.reset(::open(beside.c_str(), O_RDONLY | kFlags));
  if (!fd.is_open()) return system_error(beside, "open", errno);
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return system_error(beside, "lock", errno);
  }
  return KeysFileLock(std::move(fd));
}

Status write_keys_file(const std::filesystem::path& path, std::string_view text) {
  FileAccess access{.mode = 0600};
  struct stat info {};
  // A server of another user reads its file by its group.
  if (::stat(path.c_str(), &info) == 0) {
    access = {.mode = info.st_mode & 0770, .group = info.st_gid};
  }
  return write_file_atomically(path, text, access);
}

}  // namespace muster
