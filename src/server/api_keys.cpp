// A key is known by its SHA-256 alone. A lookup compares the digest with every entry and never
// stops early, so the time of a refusal reveals neither the position of a key nor how much of it
// was right. Only a caller who holds an expired key learns that it has expired. A request that
// carries two different keys is refused, since no choice between them would be safe.

#include "server/api_keys.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <span>

#include "base/file.h"
#include "base/text.h"

namespace muster {
namespace {

constexpr std::array<std::string_view, kKeyScopeCount> kScopeNames{"embed", "read", "admin"};
constexpr std::size_t kFileSizeMost = 1 << 20;
constexpr std::size_t kKeySizeMost = 512;  // longer ones are not hashed

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

// Source: RFC 6750, section 2.1; the scheme's case does not matter (RFC 9110, section 11.1).
Result<std::string_view> bearer_key(std::string_view value) {
  constexpr std::string_view kScheme = "bearer ";
  if (value.size() < kScheme.size() || !is_same_name(value.substr(0, kScheme.size()), kScheme)) {
    return Error{ErrorKind::InvalidArgument, "the Authorization header is not \"Bearer KEY\""};
  }
  return trim(value.substr(kScheme.size()));
}

Result<std::string_view> given_key(const HttpHeaders& headers) {
  std::optional<std::string_view> found;
  for (const auto& [name, value] : headers) {
    std::string_view key;
    if (is_same_name(name, "authorization")) {
      key = MUSTER_TRY(bearer_key(value));
    } else if (is_same_name(name, "x-api-key")) {
      key = trim(value);
    } else {
      continue;
    }
    if (found && *found != key) {
      return Error{ErrorKind::InvalidArgument, "the request carries two different API keys"};
    }
    found = key;
  }
  if (!found || found->empty()) {
    return Error{ErrorKind::InvalidArgument,
                 "an API key is needed: send it as \"Authorization: Bearer KEY\""};
  }
  return *found;
}

}  // namespace

std::string_view key_scope_name(KeyScope scope) {
  return kScopeNames[static_cast<std::size_t>(scope)];
}

Result<KeyScope> parse_key_scope(std::string_view name) {
  for (std::size_t i = 0; i < kKeyScopeCount; ++i) {
    if (kScopeNames[i] == name) return static_cast<KeyScope>(i);
  }
  const std::vector<std::string> names(kScopeNames.begin(), kScopeNames.end());
  const auto nearest = nearest_name(name, names);
  return Error{ErrorKind::InvalidArgument,
               fmt::format("unknown scope {}; {}", name,
                           nearest ? fmt::format("did you mean {}?", *nearest)
                                   : "there are embed, read and admin")};
}

Result<std::string> read_keys_file(const std::filesystem::path& path) {
  const auto file = MUSTER_TRY(open_regular_file(path, O_RDONLY));
  // Digests are no secrets by themselves, but a file that others can write would let them add a
  // key.
  if ((file.mode & 0007) != 0) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: everybody on this machine may use it (mode {:04o}); say "
                             "`chmod o-rwx` to it",
                             path.string(), file.mode)};
  }
  return read_all(file.fd.get(), kFileSizeMost, path);
}

Result<std::shared_ptr<const ApiKeys>> ApiKeys::load(const std::filesystem::path& path) {
  const auto text = MUSTER_TRY(read_keys_file(path));
  auto keys = MUSTER_TRY(parse_api_keys(path.string(), text));
  return std::make_shared<const ApiKeys>(std::move(keys));
}

std::shared_ptr<const ApiKeys> ApiKeys::of_one(std::string_view key) {
  ApiKey only;
  only.name = "api_key";
  only.sha256 = sha256(key);
  only.scopes.fill(true);
  return std::make_shared<const ApiKeys>(std::vector<ApiKey>{std::move(only)});
}

Result<Caller> ApiKeys::authenticate(const HttpHeaders& headers, double unix_seconds) const {
  const auto key = MUSTER_TRY(given_key(headers));
  if (key.size() > kKeySizeMost) {
    return Error{ErrorKind::InvalidArgument, "the API key is not known"};
  }
  const auto digest = sha256(key);
  // Every key is compared, and each comparison takes its full time.
  std::size_t found = keys_.size();
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const bool is_it = CRYPTO_memcmp(digest.data(), keys_[i].sha256.data(), digest.size()) == 0;
    found = is_it ? i : found;
  }
  if (found == keys_.size()) {
    return Error{ErrorKind::InvalidArgument, "the API key is not known"};
  }
  const auto& owner = keys_[found];
  if (owner.expires_unix_seconds && unix_seconds >= *owner.expires_unix_seconds) {
    return Error{ErrorKind::InvalidArgument, fmt::format("the API key {} has expired", owner.name)};
  }
  return Caller{owner.name, owner.scopes};
}

std::map<std::string, CallerLimits> ApiKeys::limits() const {
  std::map<std::string, CallerLimits> limits;
  for (const auto& key : keys_) limits.emplace(key.name, key.limits);
  return limits;
}

}  // namespace muster
