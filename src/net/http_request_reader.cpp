// Beast parses, and this class decides what is acceptable. Two readers of one stream (a proxy
// and this server) must never see different requests, so whatever leaves room for that is
// refused even where Beast would take it: folded headers, two Host headers, an encoding beside
// chunked. Everything a client controls is bounded before memory is spent on it.

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
// And behind it, since a parser of JSON reads beyond the end: else a short body is moved for it.
constexpr std::uint64_t kBytesBehind = 64;

// Each field costs far more than its bytes on the wire ("a:" becomes two strings). Browsers behind
// two proxies send about forty. The number is Apache's: LimitRequestFields.
constexpr int kFieldsMost = 100;

// What is at least to come of a body in chunks: "0", CR, LF, CR, LF. Beast 1.81 stops the process
// (an assertion of basic_parser::parse_chunk_header) when it gets the first of the last chunk and
// then one byte more, so it gets these together.
constexpr std::size_t kLastChunkBytes = 5;

constexpr std::string_view kLineEnd = "\r\n";

HttpResponse refuse(int status, std::string sentence) {
  return {.status = status, .body = std::move(sentence) + "\n"};
}

HttpResponse refusal_of(const Failure& error, const HttpLimits& limits) {
  if (error == http::error::header_limit) {
    return refuse(431,
                  fmt::format("the request's headers or trailers are too long: more than {} bytes",
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

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Whether one of these whole lines of a head is led by blanks: it goes on with the one before it,
// or stands behind the request line. Beast joins such lines. Source: RFC 9112, sections 2.2, 5.2.
bool has_line_led_by_blank(std::string_view lines) {
  if (!lines.empty() && is_blank(lines.front())) return true;
  for (auto end = lines.find('\n'); end != lines.npos && end + 1 < lines.size();
       end = lines.find('\n', end + 1)) {
    if (is_blank(lines[end + 1])) return true;
  }
  return false;
}

bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Whether a chunk may begin with this, as far as it has come: behind another chunk the end of that
// one's line, then digits, and behind them an extension or the end of the line. Beast looks at the
// line only when all of it is here, and one that is none may never end.
// Source: RFC 9112, section 7.1.
bool may_begin_chunk(std::string_view line, bool is_first) {
  if (!is_first) {
    const auto end = line.substr(0, kLineEnd.size());
    if (!kLineEnd.starts_with(end)) return false;
    line.remove_prefix(end.size());
  }
  if (line.empty()) return true;
  const auto* const behind = std::find_if_not(line.begin(), line.end(), is_hex_digit);
  if (behind == line.begin()) return false;
  return behind == line.end() || *behind == '\r' || *behind == ';' || is_blank(*behind);
}

/// Beast's grammar, straight into a HttpRequest.
class RequestParser final : public http::basic_parser<true> {
 public:
  HttpRequest request;
  std::optional<HttpResponse> refusal;  // what Beast takes and we do not
  bool expects_continue = false;
  std::size_t extension_bytes_left = 0;

  // What comes next belongs to the line of a chunk, or to what follows that of the last one.
  bool is_at_chunk() const { return is_header_done() && chunked() && chunk_bytes_left_ == 0; }

 private:
  void on_request_impl(http::verb /*method*/, Text method, Text target, int version,
                       Failure& error) override {
    error = {};
    constexpr std::size_t kHeaders = 8;  // most clients send no more
    request.headers.reserve(kHeaders);
    request.method = copy(method);
    is_http11_ = version == kHttp11;
    const std::string_view whole(target.data(), target.size());
    if (whole.starts_with('/')) return set_path(whole);
    // A whole address, as proxies are asked. Source: RFC 9112, section 3.2.2.
    const auto colon = whole.find("://");
    if (colon == std::string_view::npos) return set_path(whole);  // it meets no route
    const auto rest = whole.substr(colon + 3);
    const auto end = std::min(rest.find_first_of("/?"), rest.size());
    const auto scheme = Text(whole.data(), colon);
    authority_ = rest.substr(0, end);
    const bool is_http =
        boost::beast::iequals(scheme, "http") || boost::beast::iequals(scheme, "https");
    if (!is_http || authority_.empty() || authority_.find('@') != std::string::npos) {
      refusal = refuse(400, "the request's target is neither a path nor an http address");
      error = http::error::bad_target;
      return;
    }
    set_path(rest.substr(end));
  }

  void set_path(std::string_view target) {
    const auto question = std::min(target.find('?'), target.size());
    request.path = question == 0 ? "/" : target.substr(0, question);
    if (question < target.size()) request.query = target.substr(question + 1);
  }

  void on_field_impl(http::field name, Text name_text, Text value, Failure& error) override {
    error = {};
    // Trailers come after all that could be said by them has been judged.
    if (is_header_over_) return;
    if (++field_count_ > kFieldsMost) {
      refusal = refuse(431, fmt::format("the request has more than {} headers", kFieldsMost));
      error = http::error::header_limit;
      return;
    }
    if (name == http::field::transfer_encoding) {
      is_chunked_alone_ = encoding_count_ == 0 && boost::beast::iequals(value, "chunked");
      ++encoding_count_;
    } else if (name == http::field::expect) {
      expects_continue = is_http11_ && boost::beast::iequals(value, "100-continue");
    } else if (name == http::field::host) {
      ++host_count_;
      if (!authority_.empty()) return;
    }
    request.headers.emplace_back(copy(name_text), copy(value));
  }

  // What would let two readers of one stream see different requests is refused.
  // Source: RFC 9112, sections 3.2, 6.1 and 6.3.
  void on_header_impl(Failure& error) override {
    error = {};
    is_header_over_ = true;
    if (is_http11_ && host_count_ != 1) {
      refusal = refuse(400, "the request must have one Host header");
    } else if (encoding_count_ > 0 && !is_http11_) {
      refusal = refuse(400, "a request of HTTP/1.0 has no Transfer-Encoding");
    } else if (encoding_count_ > 0 && !is_chunked_alone_) {
      refusal = refuse(501, "the request's Transfer-Encoding is not chunked alone");
    }
    if (refusal) error = http::error::bad_value;
    if (!authority_.empty()) request.headers.emplace_back("Host", std::move(authority_));
    request.wants_keep_alive = keep_alive() && is_http11_;
    request.is_http10 = !is_http11_;
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>& size, Failure& error) override {
    error = {};
    if (!size) return;
    announced_ = *size;
    request.body.reserve(std::min(announced_, kTrustedBytes) + kBytesBehind);
  }

  // Once the first piece of an announced body is full, the place for all of it is taken: pages that
  // nothing is written to cost nothing, and no byte is moved a second time.
  std::size_t on_body_impl(Text body, Failure& error) override {
    error = {};
    const auto size = request.body.size() + body.size();
    if (size > request.body.capacity() && announced_ > 0) {
      request.body.reserve(announced_ + kBytesBehind);
    }
    request.body.append(body.data(), body.size());
    return body.size();
  }

  void on_chunk_header_impl(std::uint64_t size, Text extensions, Failure& error) override {
    error = {};
    chunk_bytes_left_ = size;
    if (extensions.size() > extension_bytes_left) error = http::error::header_limit;
    extension_bytes_left -= std::min(extension_bytes_left, extensions.size());
  }

  std::size_t on_chunk_body_impl(std::uint64_t left, Text body, Failure& error) override {
    chunk_bytes_left_ = left - body.size();
    return on_body_impl(body, error);
  }

  void on_response_impl(int /*status*/, Text /*reason*/, int /*version*/, Failure& error) override {
    error = {};
  }

  void on_finish_impl(Failure& error) override { error = {}; }

  bool is_http11_ = false;
  bool is_header_over_ = false;
  bool is_chunked_alone_ = false;
  int field_count_ = 0;
  int encoding_count_ = 0;
  int host_count_ = 0;
  std::string authority_;  // of a target that is a whole address
  std::uint64_t announced_ = 0;
  std::uint64_t chunk_bytes_left_ = 0;
};

}  // namespace

struct HttpRequestReader::Parser {
  RequestParser http;
  bool has_answered_expect = false;
  bool has_begun = false;  // with more than an empty line
};

HttpRequestReader::HttpRequestReader(const HttpLimits& limits)
    : parser_(std::make_unique<Parser>()), limits_(limits) {
  parser_->http.header_limit(limits.header_bytes);
  parser_->http.body_limit(limits.body_bytes);
  parser_->http.extension_bytes_left = limits.header_bytes;
}

HttpRequestReader::HttpRequestReader(HttpRequestReader&&) noexcept = default;
HttpRequestReader& HttpRequestReader::operator=(HttpRequestReader&&) noexcept = default;
HttpRequestReader::~HttpRequestReader() = default;

std::size_t HttpRequestReader::put(std::span<const char> bytes) { return put_all(bytes, false); }

std::size_t HttpRequestReader::put_head(std::span<const char> bytes) {
  return is_head_done() ? 0 : put_all(bytes, true);
}

std::size_t HttpRequestReader::put_all(std::span<const char> bytes, bool is_head_only) {
  if (refusal_ || is_done() || bytes.empty()) return 0;
  auto& http = parser_->http;
  const std::string_view text(bytes.data(), bytes.size());
  if (bytes.size() < kLastChunkBytes && http.is_header_done() && http.chunked() &&
      http.request.body.empty()) {
    refuse_bad_chunk(text);
    return 0;  // all of them stay for the next call
  }
  std::size_t taken = 0;
  if (!parser_->has_begun) {
    // Some clients send an empty line behind a body. Source: RFC 9112, section 2.2.
    if (text == kLineEnd.substr(0, 1)) return 0;
    taken = text.starts_with(kLineEnd) ? kLineEnd.size() : 0;
    parser_->has_begun = true;
  }
  Failure error;
  // The parser stops after the head and after each chunk; it is asked until it wants more bytes.
  while (taken < bytes.size() && !http.is_done() && !(is_head_only && http.is_header_done())) {
    const bool is_of_head = !http.is_header_done();
    refuse_bad_chunk(text.substr(taken));
    if (refusal_) break;
    const auto size =
        http.put(boost::asio::const_buffer(bytes.data() + taken, bytes.size() - taken), error);
    // Of the head Beast takes whole lines.
    if (is_of_head && has_line_led_by_blank(text.substr(taken, size))) {
      refusal_ = refuse(400, "a header of the request is led by blanks or goes on in a next line");
      break;
    }
    taken += size;
    if (error == http::error::need_more) break;
    if (error) {
      refusal_ = http.refusal ? http.refusal : refusal_of(error, limits_);
      break;
    }
    if (size == 0) break;
  }
  // Beast looks for the end of a chunk's line and of the trailers for as long as more comes.
  if (!refusal_ && !http.is_done() && http.is_header_done() && !is_head_only &&
      bytes.size() - taken > limits_.header_bytes) {
    refusal_ = refusal_of(http::error::header_limit, limits_);
  }
  return taken;
}

void HttpRequestReader::refuse_bad_chunk(std::string_view line) {
  const auto& http = parser_->http;
  if (!http.is_at_chunk() || may_begin_chunk(line, http.request.body.empty())) return;
  refusal_ = refuse(400, "a chunk of the request's body does not begin with its length");
}

bool HttpRequestReader::is_head_done() const { return parser_->http.is_header_done(); }

HttpRequest& HttpRequestReader::request() { return parser_->http.request; }
const HttpRequest& HttpRequestReader::request() const { return parser_->http.request; }

std::optional<std::uint64_t> HttpRequestReader::announced_bytes() const {
  const auto& http = parser_->http;
  if (http.chunked()) return std::nullopt;
  return http.content_length().value_or(0);
}

void HttpRequestReader::set_body_limit(std::uint64_t bytes) {
  limits_.body_bytes = bytes;
  parser_->http.body_limit(bytes);
  if (announced_bytes().value_or(0) > bytes) {
    refusal_ = refusal_of(http::error::body_limit, limits_);
  }
}

bool HttpRequestReader::is_done() const { return parser_->http.is_done(); }

bool HttpRequestReader::take_expects_continue() {
  if (!parser_->http.expects_continue || !parser_->http.is_header_done() || is_done()) return false;
  return !std::exchange(parser_->has_answered_expect, true);
}

HttpRequest HttpRequestReader::take() { return std::move(parser_->http.request); }

}  // namespace muster
