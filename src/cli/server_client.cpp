// The key comes from a file or from the settings and never from a flag of these commands, because
// other users see a process's flags. A key of the settings with a blank or a line end in it is
// refused: it could become another header of the request. `embed` and `ctl` share these flags, so a
// server is named to both in the same way.

#include "cli/server_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "net/socket_address.h"

namespace muster {
namespace {

constexpr std::uint64_t kKeyFileMax = 4096;

// The first line of the file, without what an editor leaves at its end.
Result<std::string> read_key(const std::string& file) {
  auto key = MUSTER_TRY(read_file(file, kKeyFileMax));
  key.erase(std::min(key.find_first_of(" \t\r\n"), key.size()));
  if (key.empty()) return Error{ErrorKind::InvalidArgument, fmt::format("{}: no key in it", file)};
  return key;
}

// As muster's server makes them: what else stands there is nothing for a terminal.
bool is_request_id(std::string_view id) {
  constexpr std::size_t kSizeMost = 128;
  return !id.empty() && id.size() <= kSizeMost && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

bool is_on_this_machine(const std::string& url) {
  const auto parsed = parse_http_url(url);
  if (!parsed) return false;
  if (!parsed->unix_path.empty() || parsed->host == "localhost") return true;
  const auto address = SocketAddress::parse(parsed->host);
  return address && address->is_loopback();
}

}  // namespace

FlagGroup server_flags(const std::string& server_help) {
  return {"The server",
          {},
          {{"--server", "URL", server_help},
           {"--api-key-file", "FILE", "holds the key that it asks for (default: MUSTER_API_KEY)"},
           {"--ca-file", "FILE", "who signed its certificate (PEM); the system's without it"},
           {"--client-cert", "FILE", "the certificate to show it (PEM)"},
           {"--client-key", "FILE", "its private key (PEM)"}}};
}

Result<ServerAccess> server_access(const CommandContext& context) {
  const auto& arguments = context.arguments;
  ServerAccess access;
  access.url = arguments.value("--server").value_or("http://127.0.0.1:8000");
  access.http.tls.ca_file = arguments.value("--ca-file").value_or("");
  access.http.tls.certificate_file = arguments.value("--client-cert").value_or("");
  access.http.tls.key_file = arguments.value("--client-key").value_or("");
  if (const auto file = arguments.value("--api-key-file")) {
    access.headers.emplace_back("Authorization", "Bearer " + MUSTER_TRY(read_key(*file)));
  } else if (const auto key = context.config.text(SettingId::ApiKey)) {
    // A line end would make a header of its own.
    if (!std::all_of(key->begin(), key->end(), [](char c) { return c > ' ' && c <= '~'; })) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{}: a key has visible ASCII characters alone",
                               context.config.at(SettingId::ApiKey).place)};
    }
    access.headers.emplace_back("Authorization", "Bearer " + *key);
  }
  access.headers.emplace_back("Content-Type", "application/json");
  return access;
}

Result<ServerClient> ServerClient::open(const CommandContext& context,
                                        std::optional<Duration> answer_limit) {
  auto access = MUSTER_TRY(server_access(context));
  access.http.answer_limit = answer_limit.value_or(access.http.answer_limit);
  ServerClient client;
  client.http = MUSTER_TRY(HttpClient::open(access.url, access.http));
  client.headers = std::move(access.headers);
  client.is_assumed = !context.arguments.value("--server");
  client.is_here = is_on_this_machine(access.url);
  return client;
}

Result<std::string> ServerClient::call(std::string_view method, std::string_view target,
                                       const std::string& body) {
  auto answer = http->call(method, target, headers, body);
  if (!answer) {
    auto error = answer.error();
    const bool is_elsewhere = is_assumed && error.kind == ErrorKind::Unavailable;
    if (is_elsewhere) error.message += "; --server URL names a server that listens elsewhere";
    return error;
  }
  if (answer->status >= 200 && answer->status <= 299) return std::move(answer->body);
  auto error = server_error(answer->status, answer->body);
  const auto id = answer->header("X-Request-Id").value_or("");
  if (is_request_id(id)) error.message += fmt::format(" (request {})", id);
  return error;
}

}  // namespace muster
