#include "cli/server_client.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "terminal/text_width.h"

namespace muster {
namespace {

constexpr std::uint64_t kKeyFileMax = 4096;
constexpr std::size_t kBodyShown = 200;  // bytes of an answer that is no error body of muster's

// The first line of the file, without what an editor leaves at its end.
Result<std::string> read_key(const std::string& file) {
  auto key = MUSTER_TRY(read_file(file, kKeyFileMax));
  key.erase(std::min(key.find_first_of(" \t\r\n"), key.size()));
  if (key.empty()) return Error{ErrorKind::InvalidArgument, fmt::format("{}: no key in it", file)};
  return key;
}

ErrorKind kind_of(int status) {
  switch (status) {
    case 404:
      return ErrorKind::NotFound;
    case 422:
      return ErrorKind::Unsupported;
    case 429:
      return ErrorKind::ResourceExhausted;
    case 503:
      return ErrorKind::Unavailable;
    case 504:
      return ErrorKind::DeadlineExceeded;
    default:
      return status >= 500 ? ErrorKind::Internal : ErrorKind::InvalidArgument;
  }
}

}  // namespace

FlagGroup server_flags() {
  return {"The server",
          {},
          {{"--server", "URL", "where it is; http://127.0.0.1:8000 without it"},
           {"--api-key-file", "FILE", "holds the key that it asks for"},
           {"--ca-file", "FILE", "who signed its certificate (PEM); the system's without it"},
           {"--client-cert", "FILE", "the certificate to show it (PEM)"},
           {"--client-key", "FILE", "its private key (PEM)"}}};
}

Result<ServerClient> ServerClient::open(const CommandContext& context) {
  const auto& arguments = context.arguments;
  ServerClient client;
  HttpClientOptions options;
  options.tls.ca_file = arguments.value("--ca-file").value_or("");
  options.tls.certificate_file = arguments.value("--client-cert").value_or("");
  options.tls.key_file = arguments.value("--client-key").value_or("");
  client.http = MUSTER_TRY(
      HttpClient::open(arguments.value("--server").value_or("http://127.0.0.1:8000"), options));
  if (const auto file = arguments.value("--api-key-file")) {
    client.headers.emplace_back("Authorization", "Bearer " + MUSTER_TRY(read_key(*file)));
  }
  client.headers.emplace_back("Content-Type", "application/json");
  return client;
}

Result<std::string> ServerClient::call(std::string_view method, std::string_view target,
                                       const std::string& body) {
  auto answer = MUSTER_TRY(http->call(method, target, headers, body));
  if (answer.status < 200 || answer.status > 299) return server_error(answer.status, answer.body);
  return std::move(answer.body);
}

std::string server_message(const std::string& body) {
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  const auto pointer = nlohmann::json::json_pointer("/error/message");
  if (json.is_object() && json.contains(pointer) && json.at(pointer).is_string()) {
    return json.at(pointer).get<std::string>();
  }
  return printable(body.substr(0, kBodyShown));
}

Error server_error(int status, const std::string& body) {
  return {kind_of(status), fmt::format("the server says {}: {}", status, server_message(body))};
}

}  // namespace muster
