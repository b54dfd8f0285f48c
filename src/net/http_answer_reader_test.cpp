#include "net/http_answer_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster {
namespace {

class Kept final : public HttpAnswerParts {
 public:
  void on_head(int code, const HttpHeaders& fields) override {
    status = code;
    headers = fields;
  }
  void on_body(std::string_view bytes) override { pieces.emplace_back(bytes); }

  std::string body() const {
    std::string all;
    for (const auto& piece : pieces) all += piece;
    return all;
  }

  int status = 0;
  HttpHeaders headers;
  std::vector<std::string> pieces;
};

// In pieces of `size` bytes; what is left over at the end.
std::string feed(HttpAnswerReader& reader, std::string_view stream, std::size_t size) {
  std::string unread;
  for (std::size_t at = 0; at < stream.size(); at += size) {
    unread += stream.substr(at, size);
    unread.erase(0, reader.put(unread));
  }
  return unread;
}

struct Case {
  std::string_view stream;
  int status;
  std::string_view body;
  bool keeps_alive;
};

const std::vector<Case>& whole_answers() {
  static const std::vector<Case> cases{
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, "", true},
      {"HTTP/1.1 503 Busy\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx", 503, "x", false},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
       "chunked\r\n\r\n5\r\nhello\r\n3;a=b\r\nabc\r\n0\r\n\r\n",
       200, "helloabc", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, "", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nTrailer: x\r\n\r\n",
       200, "ok", true},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok",
       true},
      {"HTTP/1.1 204 No Content\r\n\r\n", 204, "", true},
  };
  return cases;
}

TEST(HttpAnswerReader, ReadsAnswersWhereverTheyAreCut) {
  for (const auto& one : whole_answers()) {
    for (std::size_t size = 1; size <= one.stream.size(); ++size) {
      SCOPED_TRACE(std::string(one.stream) + " in pieces of " + std::to_string(size));
      Kept kept;
      HttpAnswerReader reader(kept);
      EXPECT_EQ(feed(reader, one.stream, size), "");
      ASSERT_TRUE(reader.is_done()) << reader.problem().value_or("it waits for more");
      EXPECT_EQ(kept.status, one.status);
      EXPECT_EQ(kept.body(), one.body);
      EXPECT_EQ(reader.keeps_alive(), one.keeps_alive);
    }
  }
}

TEST(HttpAnswerReader, HandsTheBodyOnAsItComes) {
  Kept kept;
  HttpAnswerReader reader(kept);
  const auto unread =
      feed(reader, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", 1000);
  EXPECT_EQ(kept.body(), "ab");
  feed(reader, unread + "1\r\nc\r\n", 1000);
  EXPECT_EQ(kept.body(), "abc");
  EXPECT_FALSE(reader.is_done());
}

TEST(HttpAnswerReader, LeavesTheNextAnswerAndReadsItAfterAReset) {
  Kept kept;
  HttpAnswerReader reader(kept);
  const std::string both =
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 201 Created\r\nContent-Length: "
      "1\r\n\r\nb";
  const auto rest = feed(reader, both, both.size());
  EXPECT_TRUE(reader.is_done());
  EXPECT_TRUE(rest.starts_with("HTTP/1.1 201"));
  reader.reset();
  EXPECT_EQ(feed(reader, rest, rest.size()), "");
  EXPECT_TRUE(reader.is_done());
  EXPECT_EQ(kept.status, 201);
  EXPECT_EQ(kept.body(), "ab");
}

TEST(HttpAnswerReader, AnAnswerWithoutALengthEndsWithTheStream) {
  Kept kept;
  HttpAnswerReader reader(kept);
  feed(reader, "HTTP/1.1 200 OK\r\n\r\nuntil the end", 4);
  EXPECT_FALSE(reader.is_done());
  reader.put_end();
  EXPECT_TRUE(reader.is_done());
  EXPECT_FALSE(reader.keeps_alive());
  EXPECT_EQ(kept.body(), "until the end");
}

TEST(HttpAnswerReader, SaysWhyAStreamIsNoAnswer) {
  for (const std::string_view stream :
       {"SMTP ready\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnothex\r\n"}) {
    SCOPED_TRACE(std::string(stream));
    Kept kept;
    HttpAnswerReader reader(kept);
    feed(reader, stream, stream.size());
    ASSERT_TRUE(reader.problem());
    EXPECT_TRUE(reader.problem()->starts_with("the answer cannot be read: ")) << *reader.problem();
  }
}

// Else a server makes its client keep as much as it likes to send.
TEST(HttpAnswerReader, ALineOfChunksHasAnEnd) {
  for (const std::string_view begin : {"5;a=", "2\r\nok\r\n0\r\nTrailer: "}) {
    SCOPED_TRACE(std::string(begin));
    Kept kept;
    HttpAnswerReader reader(kept);
    const auto stream = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
                        std::string(begin) + std::string(200'000, 'x');
    feed(reader, stream, 16 << 10);
    EXPECT_EQ(reader.problem(), "the answer cannot be read: a line of its chunks has no end");
  }
}

TEST(HttpAnswerReader, AStreamThatEndsTooEarlyIsNoAnswer) {
  for (const std::string_view stream :
       {"", "HTTP/1.1 200", "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nh"}) {
    SCOPED_TRACE(std::string(stream));
    Kept kept;
    HttpAnswerReader reader(kept);
    feed(reader, stream, 3);
    reader.put_end();
    EXPECT_FALSE(reader.is_done());
    EXPECT_EQ(reader.problem(), "the connection was closed before the answer's end");
  }
}

}  // namespace
}  // namespace muster
