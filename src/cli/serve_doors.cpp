// Where clients come in, and which of them: port, Unix socket, TLS, keys. These settings decide who
// may use the server, so whatever is wrong with one of them ends the start: a server that is open
// by mistake is worse than one that does not run.
#include "cli/serve_doors.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <utility>

namespace muster {
namespace {

// What a message about a setting begins with: the flag, the variable, or file and line.
std::string subject_of(const Config& config, SettingId id) {
  const auto& place = config.at(id).place;
  const auto name = setting_of(id).name;
  if (place.empty()) return std::string(name);
  return config.at(id).origin == Origin::File ? fmt::format("{}: {}", place, name) : place;
}

Status check_file(const Config& config, SettingId id) {
  const auto file = config.text(id);
  std::error_code ignored;
  if (!file || std::filesystem::is_regular_file(*file, ignored)) return Done{};
  return Error{ErrorKind::NotFound,
               fmt::format("{}: no such file: {}", subject_of(config, id), *file)};
}

// A private key that others can read is no private key. As PostgreSQL has it: its owner's alone,
// or, where it is root's, for a group to read. Source: PostgreSQL, "Secure TCP/IP Connections with
// SSL".
Status check_private(const Config& config, SettingId id) {
  const auto file = config.text(id);
  struct stat info {};
  if (!file || ::stat(file->c_str(), &info) != 0) return Done{};
  const auto forbidden = info.st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
  if ((info.st_mode & forbidden) == 0) return Done{};
  return invalid_setting(
      config, id,
      fmt::format("others can read this private key (mode {:04o}): run `chmod {} {}`",
                  info.st_mode & 07777, info.st_uid == 0 ? "g-wx,o-rwx" : "go-rwx", *file));
}

// "0660" as chmod takes it: who may connect, and nothing else that a mode can say.
Result<std::uint32_t> socket_mode(const Config& config) {
  const auto text = config.text(SettingId::UnixSocketMode).value_or("");
  std::uint32_t mode = 0;
  constexpr int kOctal = 8;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), mode, kOctal);
  constexpr std::uint32_t kAll = 0777;
  constexpr std::uint32_t kOwner = 0600;
  if (code == std::errc{} && end == text.data() + text.size() && (mode & ~kAll) == 0 &&
      (mode & kOwner) == kOwner) {
    return mode;
  }
  return invalid_setting(
      config, SettingId::UnixSocketMode,
      fmt::format("a mode such as 0600 or 0660, with the owner's 06: \"{}\"", text));
}

Status set_places(const Config& config, HttpServerOptions& http) {
  const auto listen = config.text(SettingId::Listen).value_or("");
  http.listens_on_port = listen != "none";
  if (http.listens_on_port) {
    auto address = parse_listen_address(listen);
    if (!address) return invalid_setting(config, SettingId::Listen, address.error().message);
    http.listen = std::move(*address);
  }
  const auto mode = MUSTER_TRY(socket_mode(config));
  const auto path = config.text(SettingId::UnixSocket);
  if (path) {
    if (const auto address = unix_address(*path); !address) {
      return invalid_setting(config, SettingId::UnixSocket, address.error().message);
    }
    http.unix_socket = UnixSocketOptions{.path = *path, .mode = mode};
  } else if (!http.listens_on_port) {
    return invalid_setting(config, SettingId::Listen,
                           "without a port the server needs unix_socket, or nobody could come in");
  }
  return Done{};
}

}  // namespace

Error invalid_setting(const Config& config, SettingId id, const std::string& message) {
  return Error{ErrorKind::InvalidArgument, fmt::format("{}: {}", subject_of(config, id), message)};
}

Status set_listening(const Config& config, HttpServerOptions& http) {
  MUSTER_TRY(set_places(config, http));
  auto& body_bytes = http.limits.body_bytes;
  body_bytes = config.bytes(SettingId::MaxBodyBytes).value_or(body_bytes);
  http.connections_most = config.count(SettingId::ConnectionsMost).value_or(http.connections_most);
  http.memory_most = config.bytes(SettingId::MemoryMost).value_or(http.memory_most);
  const auto need = http.limits.body_bytes * kHeldForABody;
  if (MemoryBudget::most_of_one(http.memory_most) < need) {
    return invalid_setting(
        config, SettingId::MemoryMost,
        fmt::format("a body of max_body_bytes takes {0} bytes while it is answered, and "
                    "an eighth is kept for short requests: expected {1} bytes or more",
                    need, need / 7 * 8 + 8));
  }
  return Done{};
}

// What is in the files is checked by the server, which reads them.
Status set_tls(const Config& config, HttpServerOptions& http) {
  using enum SettingId;
  for (const auto id : {TlsCert, TlsKey, TlsClientCa}) MUSTER_TRY(check_file(config, id));
  MUSTER_TRY(check_private(config, TlsKey));
  const auto need = [&config](SettingId given, SettingId missing) -> Status {
    if (!config.text(given) || config.text(missing)) return Done{};
    return invalid_setting(config, given,
                           fmt::format("it needs {}, too", setting_of(missing).name));
  };
  MUSTER_TRY(need(TlsCert, TlsKey));
  MUSTER_TRY(need(TlsKey, TlsCert));
  MUSTER_TRY(need(TlsClientCa, TlsCert));
  if (!config.text(TlsCert)) {
    http.tls.reset();
  } else {
    http.tls = TlsOptions{.certificate_file = *config.text(TlsCert),
                          .key_file = *config.text(TlsKey),
                          .client_ca_file = config.text(TlsClientCa).value_or("")};
  }
  return Done{};
}

// What a client can send in a header, and nothing that a shell or an editor has left there. The
// message never has the key.
Status set_keys(const Config& config, ServeOptions& options) {
  options.keys_file = config.text(SettingId::KeysFile).value_or("");
  options.api_key = config.text(SettingId::ApiKey).value_or("");
  if (options.api_key.empty()) return Done{};
  if (!options.keys_file.empty()) {
    return invalid_setting(config, SettingId::ApiKey,
                           "keys_file says who is let in, too: give one of them");
  }
  constexpr std::size_t kSizeMost = 512;
  const bool is_sendable = options.api_key.size() <= kSizeMost &&
                           std::all_of(options.api_key.begin(), options.api_key.end(),
                                       [](char letter) { return letter > ' ' && letter <= '~'; });
  if (is_sendable) return Done{};
  return invalid_setting(
      config, SettingId::ApiKey,
      fmt::format("a key has up to {} visible ASCII characters, and no blanks", kSizeMost));
}

}  // namespace muster
