#include "net/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

namespace muster {
namespace {

struct StatusText {
  int status;
  std::string_view text;
};

constexpr std::array kStatusTexts{
    StatusText{200, "OK"},
    StatusText{202, "Accepted"},
    StatusText{204, "No Content"},
    StatusText{400, "Bad Request"},
    StatusText{401, "Unauthorized"},
    StatusText{403, "Forbidden"},
    StatusText{404, "Not Found"},
    StatusText{405, "Method Not Allowed"},
    StatusText{408, "Request Timeout"},
    StatusText{413, "Content Too Large"},
    StatusText{415, "Unsupported Media Type"},
    StatusText{422, "Unprocessable Content"},
    StatusText{429, "Too Many Requests"},
    StatusText{431, "Request Header Fields Too Large"},
    StatusText{499, "Client Closed Request"},
    StatusText{500, "Internal Server Error"},
    StatusText{501, "Not Implemented"},
    StatusText{503, "Service Unavailable"},
    StatusText{504, "Gateway Timeout"},
    StatusText{505, "HTTP Version Not Supported"},
};

bool is_same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char left, char right) {
    return std::tolower(static_cast<unsigned char>(left)) ==
           std::tolower(static_cast<unsigned char>(right));
  });
}

}  // namespace

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (is_same_name(key, name)) return value;
  }
  return std::nullopt;
}

std::string_view http_status_text(int status) {
  const auto found = std::find_if(kStatusTexts.begin(), kStatusTexts.end(),
                                  [&](const StatusText& row) { return row.status == status; });
  return found == kStatusTexts.end() ? "Status" : found->text;
}

std::string http_response_head(const HttpResponse& response, bool keeps_alive,
                               std::string_view date) {
  std::string head;
  auto out = std::back_inserter(head);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\nDate: {}\r\nContent-Length: {}\r\n", response.status,
                 http_status_text(response.status), date, response.body.size());
  if (!response.content_type.empty()) {
    fmt::format_to(out, "Content-Type: {}\r\n", response.content_type);
  }
  for (const auto& [name, value] : response.headers) {
    fmt::format_to(out, "{}: {}\r\n", name, value);
  }
  head += keeps_alive ? "\r\n" : "Connection: close\r\n\r\n";
  return head;
}

}  // namespace muster
