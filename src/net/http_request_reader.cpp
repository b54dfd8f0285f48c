#include "net/http_request_reader.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

namespace muster {
namespace {

namespace http = boost::beast::http;

constexpr unsigned kHttp11 = 11;

HttpResponse refuse(int status, std::string sentence) {
  return {.status = status, .body = std::move(sentence) + "\n"};
}

HttpResponse refusal_of(const boost::beast::error_code& error, const HttpLimits& limits) {
  if (error == http::error::header_limit) {
    return refuse(431, fmt::format("the request's headers are too long: more than {} bytes",
                                   limits.header_bytes));
  }
  if (error == http::error::body_limit) {
    return refuse(
        413, fmt::format("the request's body is too large: more than {} bytes", limits.body_bytes));
  }
  if (error == http::error::bad_version) {
    return refuse(505, "the request is not HTTP/1.0 or HTTP/1.1");
  }
  if (error == http::error::bad_transfer_encoding) {
    return refuse(501, "the request's Transfer-Encoding is none that is known here");
  }
  return refuse(400, fmt::format("the request cannot be read: {}", error.message()));
}

}  // namespace

struct HttpRequestReader::Parser {
  http::request_parser<http::string_body> http;
  bool has_answered_expect = false;
};

HttpRequestReader::HttpRequestReader(const HttpLimits& limits)
    : parser_(std::make_unique<Parser>()), limits_(limits) {
  parser_->http.header_limit(limits.header_bytes);
  parser_->http.body_limit(limits.body_bytes);
  parser_->http.eager(true);
}

HttpRequestReader::HttpRequestReader(HttpRequestReader&&) noexcept = default;
HttpRequestReader& HttpRequestReader::operator=(HttpRequestReader&&) noexcept = default;
HttpRequestReader::~HttpRequestReader() = default;

std::size_t HttpRequestReader::put(std::span<const char> bytes) {
  if (refusal_ || is_done() || bytes.empty()) return 0;
  boost::beast::error_code error;
  std::size_t taken = 0;
  // The parser stops after the head and after each chunk; it is asked until it wants more bytes.
  while (taken < bytes.size() && !parser_->http.is_done()) {
    const auto size = parser_->http.put(
        boost::asio::const_buffer(bytes.data() + taken, bytes.size() - taken), error);
    taken += size;
    if (error == http::error::need_more) break;
    if (error) {
      refusal_ = refusal_of(error, limits_);
      break;
    }
    if (size == 0) break;
  }
  return taken;
}

bool HttpRequestReader::is_done() const { return parser_->http.is_done(); }

bool HttpRequestReader::take_expects_continue() {
  if (parser_->has_answered_expect || !parser_->http.is_header_done() || is_done()) return false;
  const auto& message = parser_->http.get();
  const auto expect = message.find(http::field::expect);
  if (expect == message.end() || !boost::beast::iequals(expect->value(), "100-continue")) {
    return false;
  }
  parser_->has_answered_expect = true;
  return true;
}

HttpRequest HttpRequestReader::take() {
  auto message = parser_->http.release();
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  const auto question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string::npos) request.query = target.substr(question + 1);
  for (const auto& field : message) {
    request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  request.wants_keep_alive = message.keep_alive() && message.version() == kHttp11;
  request.body = std::move(message.body());
  return request;
}

}  // namespace muster
