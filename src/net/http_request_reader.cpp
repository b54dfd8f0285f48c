#include "net/http_request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

namespace muster {
namespace {

namespace http = boost::beast::http;
using Text = boost::beast::string_view;
using Failure = boost::beast::error_code;

constexpr int kHttp11 = 11;
// What is set aside for an announced body before any of it has come.
constexpr std::uint64_t kTrustedBytes = 64 << 10;

// What is at least to come of a body in chunks: "0", CR, LF, CR, LF. Beast 1.81 stops the process
// (an assertion of basic_parser::parse_chunk_header) when it gets the first of the last chunk and
// then one byte more, so it gets these together.
constexpr std::size_t kLastChunkBytes = 5;

HttpResponse refuse(int status, std::string sentence) {
  return {.status = status, .body = std::move(sentence) + "\n"};
}

HttpResponse refusal_of(const Failure& error, const HttpLimits& limits) {
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
  return refuse(400, fmt::format("the request cannot be read: {}", error.message()));
}

std::string copy(Text text) { return {text.data(), text.size()}; }

/// Beast's grammar, straight into a HttpRequest.
class RequestParser final : public http::basic_parser<true> {
 public:
  HttpRequest request;
  std::optional<HttpResponse> refusal;  // what Beast takes and we do not
  bool expects_continue = false;

 private:
  void on_request_impl(http::verb /*method*/, Text method, Text target, int version,
                       Failure& error) override {
    error = {};
    constexpr std::size_t kHeaders = 8;  // most clients send no more
    request.headers.reserve(kHeaders);
    request.method = copy(method);
    const auto question = std::min(target.find('?'), target.size());
    request.path = copy(target.substr(0, question));
    if (question < target.size()) request.query = copy(target.substr(question + 1));
    is_http11_ = version == kHttp11;
  }

  void on_field_impl(http::field name, Text name_text, Text value, Failure& error) override {
    error = {};
    host_count_ += name == http::field::host ? 1 : 0;
    has_transfer_encoding_ |= name == http::field::transfer_encoding;
    if (name == http::field::expect) {
      expects_continue = is_http11_ && boost::beast::iequals(value, "100-continue");
    }
    request.headers.emplace_back(copy(name_text), copy(value));
  }

  // What would let two readers of one stream see different requests is refused.
  // Source: RFC 9112, sections 3.2 and 6.3.
  void on_header_impl(Failure& error) override {
    error = {};
    if (is_http11_ && host_count_ != 1) {
      refusal = refuse(400, "the request must have one Host header");
    } else if (has_transfer_encoding_ && !chunked()) {
      refusal = refuse(501, "the request's Transfer-Encoding is none that is known here");
    }
    if (refusal) error = http::error::bad_value;
    request.wants_keep_alive = keep_alive() && is_http11_;
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>& size, Failure& error) override {
    error = {};
    if (size) request.body.reserve(std::min(*size, kTrustedBytes));
  }

  std::size_t on_body_impl(Text body, Failure& error) override {
    error = {};
    request.body.append(body.data(), body.size());
    return body.size();
  }

  void on_chunk_header_impl(std::uint64_t /*size*/, Text /*extensions*/, Failure& error) override {
    error = {};
  }

  std::size_t on_chunk_body_impl(std::uint64_t /*left*/, Text body, Failure& error) override {
    return on_body_impl(body, error);
  }

  void on_response_impl(int /*status*/, Text /*reason*/, int /*version*/, Failure& error) override {
    error = {};
  }

  void on_finish_impl(Failure& error) override { error = {}; }

  bool is_http11_ = false;
  bool has_transfer_encoding_ = false;
  int host_count_ = 0;
};

}  // namespace

struct HttpRequestReader::Parser {
  RequestParser http;
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
  const auto& http = parser_->http;
  if (bytes.size() < kLastChunkBytes && http.is_header_done() && http.chunked() &&
      http.request.body.empty()) {
    return 0;  // all of them stay for the next call
  }
  Failure error;
  std::size_t taken = 0;
  // The parser stops after the head and after each chunk; it is asked until it wants more bytes.
  while (taken < bytes.size() && !parser_->http.is_done()) {
    const auto size = parser_->http.put(
        boost::asio::const_buffer(bytes.data() + taken, bytes.size() - taken), error);
    taken += size;
    if (error == http::error::need_more) break;
    if (error) {
      refusal_ = parser_->http.refusal ? parser_->http.refusal : refusal_of(error, limits_);
      break;
    }
    if (size == 0) break;
  }
  return taken;
}

bool HttpRequestReader::is_done() const { return parser_->http.is_done(); }

bool HttpRequestReader::take_expects_continue() {
  if (!parser_->http.expects_continue || !parser_->http.is_header_done() || is_done()) return false;
  return !std::exchange(parser_->has_answered_expect, true);
}

HttpRequest HttpRequestReader::take() { return std::move(parser_->http.request); }

}  // namespace muster
