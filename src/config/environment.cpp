// Which of the environment's variables are settings. An unknown one that begins as ours do is a
// warning, since environments hold much that is not ours; but one that looks like a mistyped guard
// (TLS, keys, audit) is an error.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "config/config.h"

namespace muster {
namespace {

constexpr std::string_view kPrefix = "MUSTER_";

// Kubernetes gives a container these for every Service of its namespace; for one named "muster"
// they begin as ours do. Source: Kubernetes, "Service", section "Environment variables".
bool is_of_kubernetes(std::string_view name, std::string_view value) {
  for (const auto* scheme : {"tcp://", "udp://", "sctp://"}) {
    if (value.starts_with(scheme)) return true;
  }
  name.remove_prefix(kPrefix.size());
  constexpr std::string_view kService = "SERVICE_";
  const auto service = name.find(kService);  // MUSTER_SERVICE_HOST, MUSTER_GPU_SERVICE_PORT_HTTP
  const bool is_word = service == 0 || (service != name.npos && name[service - 1] == '_');
  if (is_word) {
    const auto rest = name.substr(service + kService.size());
    if (rest == "HOST" || rest == "PORT" || rest.starts_with("PORT_")) return true;
  }
  const auto port = name.find("PORT_");  // MUSTER_PORT_8000_TCP_ADDR
  return port != name.npos && port + 5 < name.size() && name[port + 5] >= '0' &&
         name[port + 5] <= '9';
}

// Left out, a mistyped one of these would leave a server open, or unwatched.
constexpr SettingId kGuards[] = {SettingId::TlsCert,  SettingId::TlsKey, SettingId::TlsClientCa,
                                 SettingId::KeysFile, SettingId::ApiKey, SettingId::AuditLog};

// A misspelt MUSTER_KEYS_FILE, say, must not start a server without keys.
bool guards_access(std::string_view variable_name) {
  return std::any_of(std::begin(kGuards), std::end(kGuards), [&](SettingId id) {
    const auto& setting = setting_of(id);
    MUSTER_CHECK(setting.is_host_only);
    return variable_of(setting.name) == variable_name;
  });
}

Error unguarded(const std::string& name, const std::string& nearest) {
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{}: no setting has this name; did you mean {}? It is not left out, as "
                           "a server without that setting lets in whom it should not",
                           name, nearest)};
}

std::string warning_of(std::vector<std::string> unknown) {
  constexpr std::size_t kNamedMost = 8;  // the line stays one
  const auto more = unknown.size() > kNamedMost ? unknown.size() - kNamedMost : 0;
  unknown.resize(unknown.size() - more);
  return fmt::format(
      "the environment has variables that are no settings, and they are left out: {}{}",
      fmt::join(unknown, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

// An empty variable counts as not set: compose files often pass on variables that have no value.
Result<EnvironmentValues> read_environment(const std::vector<std::string>& environment) {
  EnvironmentValues values;
  std::vector<std::string> unknown;  // each as the warning says it
  for (const auto& entry : environment) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos || !entry.starts_with(kPrefix)) continue;
    const auto name = entry.substr(0, equals);
    if (is_of_kubernetes(name, entry.substr(equals + 1))) {
      unknown.push_back(fmt::format("{} (it is Kubernetes' own, of a Service)", name));
      continue;
    }
    if (name == kConfigFileVariable) continue;

    std::vector<std::string> candidates{std::string(kConfigFileVariable)};
    const Setting* found = nullptr;
    for (const auto& candidate : setting_names()) {
      candidates.push_back(variable_of(candidate));
      if (candidates.back() == name) found = find_setting(candidate);
    }
    if (found == nullptr) {
      const auto nearest = nearest_name(name, candidates);
      const bool is_given = equals + 1 < entry.size();
      if (nearest && is_given && guards_access(*nearest)) return unguarded(name, *nearest);
      unknown.push_back(nearest ? fmt::format("{} (did you mean {}?)", name, *nearest) : name);
      continue;
    }
    if (equals + 1 < entry.size()) {
      values.given.push_back({found->id, entry.substr(equals + 1), name});
    }
  }
  if (!unknown.empty()) values.warnings.push_back(warning_of(std::move(unknown)));
  return values;
}

}  // namespace muster
