// Beast's grammar with the body handed on in pieces: its own response parser would keep all of it.
#include "net/http_answer_reader.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace muster {
namespace {

namespace http = boost::beast::http;
using Text = boost::beast::string_view;
using Failure = boost::beast::error_code;

// As in the reader of requests: Beast 1.81 stops the process when it gets a last chunk that is also
// the first in pieces, so it gets its five bytes together.
constexpr std::size_t kLastChunkBytes = 5;
constexpr std::uint32_t kHeaderBytes = 64 << 10;  // some gateways send kilobytes of policies
constexpr int kFirstFinalStatus = 200;

class AnswerParser final : public http::basic_parser<false> {
 public:
  explicit AnswerParser(HttpAnswerParts& parts) : parts_(parts) {
    eager(true);
    header_limit(kHeaderBytes);
    body_limit(boost::none);
  }

  bool is_interim() const { return is_done() && status_ < kFirstFinalStatus; }
  bool is_before_chunks() const { return is_header_done() && chunked() && !has_chunk_; }

 private:
  void on_request_impl(http::verb /*method*/, Text /*method_text*/, Text /*target*/,
                       int /*version*/, Failure& error) override {
    error = {};
  }
  void on_response_impl(int code, Text /*reason*/, int /*version*/, Failure& error) override {
    error = {};
    status_ = code;
  }
  void on_field_impl(http::field /*name*/, Text name_text, Text value, Failure& error) override {
    error = {};
    if (is_header_over_) return;  // a trailer
    headers_.emplace_back(std::string(name_text.data(), name_text.size()),
                          std::string(value.data(), value.size()));
  }
  void on_header_impl(Failure& error) override {
    error = {};
    is_header_over_ = true;
    if (status_ >= kFirstFinalStatus) parts_.on_head(status_, headers_);
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>& /*size*/, Failure& error) override {
    error = {};
  }
  std::size_t on_body_impl(Text body, Failure& error) override {
    error = {};
    parts_.on_body({body.data(), body.size()});
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t /*size*/, Text /*extensions*/, Failure& error) override {
    error = {};
  }
  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, Text body, Failure& error) override {
    error = {};
    has_chunk_ = true;
    parts_.on_body({body.data(), body.size()});
    return body.size();
  }
  void on_finish_impl(Failure& error) override { error = {}; }

  HttpAnswerParts& parts_;
  HttpHeaders headers_;
  int status_ = 0;
  bool is_header_over_ = false;
  bool has_chunk_ = false;
};

}  // namespace

struct HttpAnswerReader::Parser {
  explicit Parser(HttpAnswerParts& parts) : parser(parts) {}
  AnswerParser parser;
};

HttpAnswerReader::HttpAnswerReader(HttpAnswerParts& parts) : parts_(parts) { reset(); }
HttpAnswerReader::~HttpAnswerReader() = default;

void HttpAnswerReader::reset() {
  parser_ = std::make_unique<Parser>(parts_);
  problem_.reset();
}

std::size_t HttpAnswerReader::put(std::span<const char> bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !problem_) {
    auto& parser = parser_->parser;
    if (parser.is_interim()) {
      parser_ = std::make_unique<Parser>(parts_);
      continue;
    }
    if (parser.is_done()) break;
    const auto left = bytes.subspan(taken);
    if (left.size() < kLastChunkBytes && parser.is_before_chunks()) break;
    Failure failure;
    const auto size = parser.put(boost::asio::const_buffer(left.data(), left.size()), failure);
    taken += size;
    if (failure == http::error::need_more) break;
    if (failure) problem_ = "the answer cannot be read: " + failure.message();
    if (size == 0) break;
  }
  // Beast looks for the end of a chunk's line and of the trailers for as long as more comes.
  const auto& parser = parser_->parser;
  if (!problem_ && parser.is_header_done() && !parser.is_done() &&
      bytes.size() - taken > kHeaderBytes) {
    problem_ = "the answer cannot be read: a line of its chunks has no end";
  }
  return taken;
}

void HttpAnswerReader::put_end() {
  auto& parser = parser_->parser;
  if (problem_ || (parser.is_done() && !parser.is_interim())) return;
  Failure failure;
  if (parser.got_some() && !parser.is_done()) parser.put_eof(failure);
  if (failure || !parser.is_done() || parser.is_interim()) {
    problem_ = "the connection was closed before the answer's end";
  }
}

bool HttpAnswerReader::is_done() const {
  return !problem_ && parser_->parser.is_done() && !parser_->parser.is_interim();
}

bool HttpAnswerReader::keeps_alive() const { return parser_->parser.keep_alive(); }

}  // namespace muster
