#include "bench/load/event_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

std::vector<std::string> events(std::string_view stream, std::size_t piece) {
  EventStream parser;
  std::vector<std::string> found;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    parser.put(stream.substr(at, piece));
    while (auto event = parser.next()) found.push_back(*event);
  }
  return found;
}

TEST(EventStream, GivesTheDataOfEachEventWhereverItIsCut) {
  struct Case {
    std::string_view stream;
    std::vector<std::string> found;
  };
  // Source of the forms: HTML Standard, section 9.2.6.
  for (const auto& one :
       {Case{"data: a\n\ndata: b\n\n", {"a", "b"}}, Case{"data:a\r\n\r\n", {"a"}},
        Case{"data: a\rdata: b\r\r", {"a\nb"}}, Case{": a comment\ndata: x\nid: 7\n\n", {"x"}},
        Case{"data\n\n", {""}}, Case{"event: end\n\n\n\n", {}},
        Case{"data:  two spaces\n\n", {" two spaces"}}, Case{"database: x\n\n", {}},
        Case{"data: not whole\n", {}}}) {
    for (std::size_t piece = 1; piece <= one.stream.size(); ++piece) {
      SCOPED_TRACE(std::string(one.stream) + " in pieces of " + std::to_string(piece));
      EXPECT_EQ(events(one.stream, piece), one.found);
    }
  }
}

TEST(EventStream, ALineWithoutAnEndIsRefusedAtItsLimit) {
  EventStream parser;
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 40 && !parser.is_too_long(); ++i) {
    parser.put(piece);
    EXPECT_FALSE(parser.next());
  }
  EXPECT_TRUE(parser.is_too_long());
}

}  // namespace
}  // namespace muster
