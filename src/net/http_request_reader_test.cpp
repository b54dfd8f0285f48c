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

}  // namespace
}  // namespace muster
