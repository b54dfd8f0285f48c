// The little of HTTP that needs no parser. Headers are compared without regard to case and
// searched one by one: a request has a dozen, for which a map would cost more than it saves.

#include "net/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
    StatusText{409, "Conflict"},
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

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char left, char right) { return lower(left) == lower(right); });
}

}  // namespace

std::optional<std::string_view> find_header(const HttpHeaders& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (is_same_name(key, name)) return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  return find_header(headers, name);
}

std::string_view http_status_text(int status) {
  const auto found = std::find_if(kStatusTexts.begin(), kStatusTexts.end(),
                                  [&](const StatusText& row) { return row.status == status; });
  return found == kStatusTexts.end() ? "Status" : found->text;
}

void append_response_head(std::string& out, const HttpResponse& response, HttpFraming framing,
                          bool keeps_alive, std::string_view date) {
  const auto line = [&out](std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
  };
  out.append("HTTP/1.1 ").append(fmt::format_int(response.status).c_str());
  out.append(" ").append(http_status_text(response.status)).append("\r\n");
  line("Date", date);
  if (framing == HttpFraming::Length) {
    line("Content-Length", fmt::format_int(response.body.size()).c_str());
  } else if (framing == HttpFraming::Chunks) {
    line("Transfer-Encoding", "chunked");
  }
  if (!response.content_type.empty()) line("Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers) line(name, value);
  if (!keeps_alive) line("Connection", "close");
  out.append("\r\n");
}

void append_chunk(std::string& out, std::string_view bytes) {
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", bytes.size());
  out.append(bytes).append("\r\n");
}

}  // namespace muster
