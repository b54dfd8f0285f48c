#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cache/sha256.h"
#include "net/http_message.h"
#include "scheduler/admission.h"

namespace muster {

/// What a key may be used for. None contains another.
enum class KeyScope : std::uint8_t {
  Embed,  // vectors, scores, tokens, and which models there are
  Read,   // health in detail, devices, statistics, metrics, settings
  Admin,  // changes of settings, loading and unloading, drains and restarts
};
inline constexpr std::size_t kKeyScopeCount = 3;

/// "embed", "read", "admin".
std::string_view key_scope_name(KeyScope scope);

/// Errors: InvalidArgument, with the nearest scope.
Result<KeyScope> parse_key_scope(std::string_view name);

using KeyScopes = std::array<bool, kKeyScopeCount>;
inline constexpr KeyScopes kUsualScopes{true, false, false};  // of a key that names none

/// One entry of a keys file. The key itself stands nowhere: 256 random bits cannot be guessed from
/// their plain SHA-256, so that no slow password hash is needed.
struct ApiKey {
  std::string name;
  Sha256Digest sha256{};
  KeyScopes scopes = kUsualScopes;
  CallerLimits limits{};
  std::optional<double> expires_unix_seconds{};  // from then on it is refused
};

/// Who asks.
struct Caller {
  std::string name;  // of the key
  KeyScopes scopes{};

  bool may(KeyScope scope) const { return scopes[static_cast<std::size_t>(scope)]; }
};

/// The entries of a keys file's text; docs/formats/api-keys.md has the form.
///
/// file_name: for messages, which name the line.
/// Errors: Corrupt (no YAML); InvalidArgument (an unknown or repeated field, a wrong value, a name
/// or a key that is there twice). Threads: pure.
Result<std::vector<ApiKey>> parse_api_keys(const std::string& file_name, std::string_view text);

/// The text of a keys file that nobody but its owner and group may read.
///
/// Errors: NotFound; InvalidArgument (others may read or write it); ResourceExhausted (over 1 MiB).
Result<std::string> read_keys_file(const std::filesystem::path& path);

/// The keys that a server knows. A reload makes another one.
///
/// Threads: immutable.
class ApiKeys {
 public:
  explicit ApiKeys(std::vector<ApiKey> keys) : keys_(std::move(keys)) {}

  /// Errors: those of read_keys_file and parse_api_keys.
  static Result<std::shared_ptr<const ApiKeys>> load(const std::filesystem::path& path);

  /// The one key of a server without a keys file, under the name "api_key": it has every scope and
  /// no limit. Its hash alone is kept.
  static std::shared_ptr<const ApiKeys> of_one(std::string_view key);

  /// Who sends these headers, `Authorization: Bearer KEY` or `X-API-Key: KEY`. How long it takes
  /// does not depend on which key it is, nor on how much of one is right.
  ///
  /// Errors: InvalidArgument (no key, two keys, an unknown or an expired one): 401.
  Result<Caller> authenticate(const HttpHeaders& headers, double unix_seconds) const;

  /// By name; every key has an entry.
  std::map<std::string, CallerLimits> limits() const;

  std::size_t count() const { return keys_.size(); }

 private:
  std::vector<ApiKey> keys_;
};

}  // namespace muster
