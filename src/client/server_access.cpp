// Turns an answer of a server into an Error. What listens there may be a proxy or another program,
// so a body that is no error body of muster's is cut short and made printable before it reaches a
// terminal.

#include "client/server_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

namespace muster {
namespace {

constexpr std::size_t kBodyShown = 200;  // bytes of an answer that is no error body of muster's

ErrorKind kind_of(int status) {
  switch (status) {
    case 404:
      return ErrorKind::NotFound;
    case 409:
      return ErrorKind::Cancelled;
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

// What came from outside must not move a terminal's cursor.
std::string one_line_of_ascii(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, ' ');
  return text;
}

}  // namespace

std::string server_message(const std::string& body) {
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json::json_pointer pointer("/error/message");
  if (json.is_object() && json.contains(pointer) && json.at(pointer).is_string()) {
    return json.at(pointer).get<std::string>();
  }
  return one_line_of_ascii(body.substr(0, kBodyShown));
}

Error server_error(int status, const std::string& body) {
  constexpr std::string_view kHint = "; --api-key-file FILE gives it a key";
  return {kind_of(status), fmt::format("the server says {}: {}{}", status, server_message(body),
                                       status == 401 ? kHint : "")};
}

}  // namespace muster
