#include "net/http_request_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

// Gives the reader `text` in pieces of `piece` bytes, as a connection would; what it leaves comes
// again with the next piece. Returns what was left.
std::string feed(HttpRequestReader& reader, std::string_view text, std::size_t piece) {
  std::string unread;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    unread += text.substr(at, piece);
    unread.erase(0, reader.put(unread));
  }
  return unread;
}

TEST(HttpRequestReader, ReadsTheSameWhateverTheCuts) {
  constexpr std::string_view kText =
      "POST /v1/embeddings?a=1&b HTTP/1.1\r\nHost: x\r\nX-Name:  two words \r\n"
      "Content-Length: 5\r\n\r\nhello";
  for (std::size_t piece = 1; piece <= kText.size(); ++piece) {
    SCOPED_TRACE(piece);
    HttpRequestReader reader({});
    EXPECT_EQ(feed(reader, kText, piece), "");
    ASSERT_TRUE(reader.is_done());
    const auto request = reader.take();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/v1/embeddings");
    EXPECT_EQ(request.query, "a=1&b");
    EXPECT_EQ(request.header("x-NAME"), "two words");
    EXPECT_FALSE(request.header("x"));
    EXPECT_EQ(request.body, "hello");
    EXPECT_TRUE(request.wants_keep_alive);
  }
}

// Moving what has come of a long body takes longer than receiving it.
TEST(HttpRequestReader, MovesNoByteOfALongBodyASecondTime) {
  constexpr std::size_t kBytes = 4 << 20;
  constexpr std::size_t kPiece = 64 << 10;
  HttpRequestReader reader({});
  reader.put("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(kBytes) +
             "\r\n\r\n");
  const std::string piece(kPiece, 'x');
  feed(reader, piece + piece, kPiece);
  const char* const place = reader.request().body.data();
  for (std::size_t sent = 2 * kPiece; sent < kBytes; sent += kPiece) reader.put(piece);
  ASSERT_TRUE(reader.is_done());
  EXPECT_EQ(reader.request().body.size(), kBytes);
  EXPECT_EQ(static_cast<const void*>(reader.request().body.data()),
            static_cast<const void*>(place));
  EXPECT_GE(reader.request().body.capacity(), kBytes + 64) << "what a parser of JSON reads beyond";
}

TEST(HttpRequestReader, PutsChunksTogetherAndLeavesTheNextRequest) {
  HttpRequestReader reader({});
  const auto rest = feed(reader,
                         "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\nGET /next HTTP/1.1\r\n",
                         1000);
  ASSERT_TRUE(reader.is_done());
  EXPECT_EQ(rest, "GET /next HTTP/1.1\r\n");
  EXPECT_EQ(reader.take().body, "abcde");
}

TEST(HttpRequestReader, ReadsAnEmptyBodyInChunksWhateverTheCuts) {
  for (const std::string& tail : {std::string("0\r\n\r\n"), std::string("0\r\nX: y\r\n\r\n")}) {
    const auto text = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + tail;
    for (std::size_t first = 1; first < text.size(); ++first) {
      SCOPED_TRACE(first);
      HttpRequestReader reader({});
      auto unread = text.substr(0, first);
      unread.erase(0, reader.put(unread));
      for (const char byte : text.substr(first)) {
        unread += byte;
        unread.erase(0, reader.put(unread));
      }
      ASSERT_TRUE(reader.is_done());
      EXPECT_EQ(unread, "");
      EXPECT_EQ(reader.take().body, "");
    }
  }
}

TEST(HttpRequestReader, KnowsWhenTheClientWaits) {
  HttpRequestReader reader({});
  feed(reader, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
       1000);
  EXPECT_TRUE(reader.take_expects_continue());
  EXPECT_FALSE(reader.take_expects_continue()) << "it is told once";
  feed(reader, "ab", 1000);
  EXPECT_TRUE(reader.is_done());
}

TEST(HttpRequestReader, AnOldClientWantsNoSecondRequest) {
  HttpRequestReader reader({});
  feed(reader, "GET / HTTP/1.0\r\n\r\n", 1000);
  ASSERT_TRUE(reader.is_done());
  EXPECT_FALSE(reader.take().wants_keep_alive);
}

TEST(HttpRequestReader, RefusesWithTheRightStatus) {
  const std::string long_header(200, 'x');
  struct Case {
    std::string text;
    int status;
  };
  for (const auto& [text, status] :
       {Case{"nonsense\r\n\r\n", 400}, Case{"GET / HTTP/2.0\r\n\r\n", 505},
        Case{"GET / HTTP/1.1\r\nX: " + long_header + "\r\n\r\n", 431},
        Case{"POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n", 413},
        Case{"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
        Case{"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
        Case{"POST / HTTP/1.1\r\nContent-Length: 0x5\r\n\r\n", 400},
        Case{"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
        Case{"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        Case{"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", 400},
        Case{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
        Case{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", 501},
        Case{"GET / HTTP/1.1\r\n\r\n", 400},
        Case{"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        Case{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400}}) {
    SCOPED_TRACE(text);
    HttpRequestReader reader({.header_bytes = 128, .body_bytes = 10});
    feed(reader, text, 1000);
    ASSERT_TRUE(reader.refusal());
    EXPECT_EQ(reader.refusal()->status, status) << reader.refusal()->body;
    EXPECT_EQ(reader.put("GET"), 0U) << "it takes nothing more";
  }
}

// One POST with an empty JSON object for a body in chunks, and what is said about its coding.
std::string chunked(std::string_view headers, std::string_view version = "HTTP/1.1") {
  return "POST / " + std::string(version) + "\r\nHost: x\r\n" + std::string(headers) +
         "\r\n2\r\n{}\r\n0\r\n\r\n";
}

// Source: RFC 9112, sections 5.2, 6.1 and 6.3; RFC 9110, section 8.6.
TEST(HttpRequestReader, RefusesWhatTwoReadersMayFrameDifferently) {
  struct Case {
    std::string text;
    int status;
  };
  for (const auto& [text, status] :
       {Case{chunked("Transfer-Encoding: gzip, chunked\r\n"), 501},
        Case{chunked("Transfer-Encoding: xchunked, chunked\r\n"), 501},
        Case{chunked("Transfer-Encoding: chunked, chunked\r\n"), 501},
        Case{chunked("Transfer-Encoding: chunked;q=1\r\n"), 501},
        Case{chunked("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"), 501},
        Case{chunked("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"), 400},
        Case{chunked("Transfer-Encoding: chunked\r\n", "HTTP/1.0"), 400},
        Case{chunked("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n"), 400},
        Case{chunked("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"), 400},
        Case{chunked("Transfer-Encoding:\r\n chunked\r\n"), 400},
        Case{chunked("Transfer-Encoding: chunked\r\nX: a\r\n\tb\r\n"), 400},
        Case{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n 2\r\n\r\n{}", 400},
        Case{"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer\r\n KEY\r\n\r\n", 400},
        Case{"GET / HTTP/1.1\r\n Host: x\r\nHost: x\r\n\r\n", 400},
        Case{"GET / HTTP/1.1\r\n\tX: y\r\nHost: x\r\n\r\n", 400},
        Case{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
        Case{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2, 3\r\n\r\n{}", 400}}) {
    SCOPED_TRACE(text);
    for (const std::size_t piece : {std::size_t{1}, text.size()}) {
      HttpRequestReader reader({});
      feed(reader, text, piece);
      ASSERT_TRUE(reader.refusal()) << piece;
      EXPECT_EQ(reader.refusal()->status, status) << reader.refusal()->body;
    }
  }
}

// The line that ends a head is begun and goes on with anything: the head ends amid a line.
TEST(HttpRequestReader, RefusesALoneCarriageReturnAtTheEndOfAHead) {
  for (const std::string head : {"GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\n"}) {
    for (const std::string end : {"\rX", "\r\r", "\rX\r\n\r\n", "\r\r\n\r\n"}) {
      SCOPED_TRACE(head + end);
      HttpRequestReader whole({});
      feed(whole, head + end, 1000);
      ASSERT_TRUE(whole.refusal());
      EXPECT_EQ(whole.refusal()->status, 400) << whole.refusal()->body;
      HttpRequestReader pieces({});
      feed(pieces, head + end, 1);
      EXPECT_FALSE(pieces.is_done());  // refused, or it waits for the head's end
    }
  }
}

TEST(HttpRequestReader, TakesChunkedInWhateverCase) {
  HttpRequestReader reader({});
  EXPECT_EQ(feed(reader, chunked("transfer-encoding:  Chunked \r\n"), 1000), "");
  ASSERT_TRUE(reader.is_done());
  EXPECT_EQ(reader.take().body, "{}");
}

// A trailer may not say who asks or how long the body is. Source: RFC 9110, section 6.5.1.
TEST(HttpRequestReader, DropsTrailers) {
  for (const std::string body : {"2\r\n{}\r\n", ""}) {
    HttpRequestReader reader({});
    feed(reader,
         "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body +
             "0\r\nAuthorization: Bearer KEY\r\nX: y\r\n\r\n",
         1000);
    ASSERT_TRUE(reader.is_done());
    const auto request = reader.take();
    EXPECT_FALSE(request.header("Authorization"));
    EXPECT_FALSE(request.header("X"));
    EXPECT_EQ(request.headers.size(), 2U);
  }
}

// Source: RFC 9112, section 3.2.2.
TEST(HttpRequestReader, TakesAWholeAddressAsItsTarget) {
  struct Case {
    std::string_view target, path, query, host;
  };
  for (const auto& [target, path, query, host] :
       {Case{"http://a.example:8000/v1/models?x=1", "/v1/models", "x=1", "a.example:8000"},
        Case{"HTTP://a.example", "/", "", "a.example"},
        Case{"http://a.example?x=1", "/", "x=1", "a.example"},
        Case{"https://[::1]:8000/livez", "/livez", "", "[::1]:8000"}}) {
    SCOPED_TRACE(target);
    HttpRequestReader reader({});
    feed(reader, "GET " + std::string(target) + " HTTP/1.1\r\nhost: localhost\r\n\r\n", 1000);
    ASSERT_TRUE(reader.is_done()) << (reader.refusal() ? reader.refusal()->body : "");
    const auto request = reader.take();
    EXPECT_EQ(request.path, path);
    EXPECT_EQ(request.query, query);
    EXPECT_EQ(request.header("Host"), host) << "what is asked for goes before the header";
    EXPECT_EQ(request.headers.size(), 1U);
  }
  for (const std::string target : {"http:///livez", "http://user@a.example/livez", "ftp://a/b"}) {
    SCOPED_TRACE(target);
    HttpRequestReader reader({});
    feed(reader, "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n", 1000);
    ASSERT_TRUE(reader.refusal());
    EXPECT_EQ(reader.refusal()->status, 400);
  }
}

// Some clients send one behind a body. Source: RFC 9112, section 2.2.
TEST(HttpRequestReader, PassesOverAnEmptyLineBeforeTheRequest) {
  constexpr std::string_view kText = "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n";
  for (std::size_t piece = 1; piece <= kText.size(); ++piece) {
    SCOPED_TRACE(piece);
    HttpRequestReader reader({});
    EXPECT_EQ(feed(reader, kText, piece), "");
    EXPECT_TRUE(reader.is_done());
  }
  HttpRequestReader reader({});
  feed(reader, "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 1000);
  EXPECT_TRUE(reader.refusal()) << "one, not any number";
}

// Without an end, each of these would be kept for ever: as bytes that wait, or chunk by chunk.
TEST(HttpRequestReader, BoundsWhatStandsAroundTheBody) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string long_text(100, 'a');
  const std::string endless_extension = "5;" + long_text;
  const std::string endless_trailer = "2\r\n{}\r\n0\r\nX: " + long_text;
  std::string many_extensions;
  for (int i = 0; i < 10; ++i) many_extensions += "1;" + std::string(20, 'a') + "\r\nx\r\n";
  for (const auto& body : {endless_extension, endless_trailer, many_extensions}) {
    for (const std::size_t piece : {std::size_t{7}, std::size_t{1000}}) {
      SCOPED_TRACE(body);
      HttpRequestReader reader({.header_bytes = 96});
      feed(reader, head + body, piece);
      ASSERT_TRUE(reader.refusal());
      EXPECT_EQ(reader.refusal()->status, 431);
    }
  }
}

// Such a line need never end; who waits for its end waits until the request is too late.
// Source: RFC 9112, section 7.1.
TEST(HttpRequestReader, RefusesABadLineOfAChunkBeforeItsEnd) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string bad :
       {"z", "-1", "+1", " 1", ";", "\n", "\r\n", "1\n", "0x", "5g", "{}", "2\r\n{}x", "2\r\n{}\n",
        "2\r\n{}\rx", "2\r\n{}\r\nz", "2\r\n{}\r\n\r\n"}) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{1000}}) {
      SCOPED_TRACE(bad + " in pieces of " + std::to_string(piece));
      HttpRequestReader reader({});
      feed(reader, head + bad, piece);
      ASSERT_TRUE(reader.refusal());
      EXPECT_EQ(reader.refusal()->status, 400) << reader.refusal()->body;
      EXPECT_EQ(reader.put("2\r\n"), 0U) << "it takes nothing more";
    }
  }
  for (const std::string good :
       {"1", "aF", "0005", "5;", "5 ;a", "5\t", "5\r", "0", "0\r\nX", "1\r\n", "1\r\nz", "2\r\n{}",
        "2\r\n{}\r", "2\r\n{}\r\n", "2\r\n{}\r\nB", "2\r\n{}\r\n0\r\n"}) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{1000}}) {
      SCOPED_TRACE(good + " in pieces of " + std::to_string(piece));
      HttpRequestReader reader({});
      feed(reader, head + good, piece);
      EXPECT_FALSE(reader.refusal()) << reader.refusal()->body;
      EXPECT_FALSE(reader.is_done());
    }
  }
}

// A field of three bytes costs two strings.
TEST(HttpRequestReader, BoundsTheNumberOfHeaders) {
  for (const int count : {100, 101}) {
    SCOPED_TRACE(count);
    std::string text = "GET / HTTP/1.1\r\nHost: x\r\n";
    for (int i = 1; i < count; ++i) text += "a:\r\n";
    HttpRequestReader reader({});
    feed(reader, text + "\r\n", 1000);
    EXPECT_EQ(reader.is_done(), count == 100);
    EXPECT_EQ(reader.refusal().has_value(), count == 101);
    if (reader.refusal()) {
      EXPECT_EQ(reader.refusal()->status, 431) << reader.refusal()->body;
    }
  }
}

TEST(HttpRequestReader, StopsAfterTheHeadWhereItIsAskedTo) {
  HttpRequestReader reader({});
  const std::string head = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(reader.put_head(head + "he"), head.size());
  ASSERT_TRUE(reader.is_head_done());
  EXPECT_FALSE(reader.is_done());
  EXPECT_EQ(reader.request().path, "/a");
  EXPECT_EQ(reader.announced_bytes(), 5U);
  EXPECT_EQ(reader.put("hello"), 5U);
  EXPECT_TRUE(reader.is_done());
}

TEST(HttpRequestReader, TakesNoLongerBodyThanIsAllowedAfterItsHead) {
  for (const std::string body : {"Content-Length: 5\r\n\r\nhello",
                                 "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"}) {
    HttpRequestReader reader({});
    const auto text = "POST / HTTP/1.1\r\nHost: x\r\n" + body;
    const auto head = reader.put_head(text);
    reader.set_body_limit(4);
    reader.put(std::string_view(text).substr(head));
    ASSERT_TRUE(reader.refusal()) << body;
    EXPECT_EQ(reader.refusal()->status, 413);
  }
}

}  // namespace
}  // namespace muster
