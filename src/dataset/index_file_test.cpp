#include <fmt/format.h>

#include "dataset/folder_fixture.h"
#include "dataset/vector_file.h"

namespace muster {
namespace {

using IndexFileTest = FolderTest;

std::string line_of(const IndexEntry& entry) {
  std::string line;
  append_index_line(entry, line);
  return line;
}

IndexEntry good_entry(std::uint64_t row) {
  IndexEntry entry;
  entry.row = row;
  entry.input = "in.txt";
  entry.line = row + 1;
  entry.token_count = 7;
  entry.text = fmt::format("text {}", row);
  return entry;
}

TEST_F(IndexFileTest, ALineHoldsTheFieldsInOrder) {
  auto entry = good_entry(5);
  EXPECT_EQ(line_of(entry),
            "{\"row\":5,\"input\":\"in.txt\",\"line\":6,\"tokens\":7,\"truncated\":false,\"text\":"
            "\"text 5\"}\n");
  entry.id = std::string("k");
  entry.is_truncated = true;
  EXPECT_EQ(
      line_of(entry),
      "{\"row\":5,\"id\":\"k\",\"input\":\"in.txt\",\"line\":6,\"tokens\":7,\"truncated\":true,"
      "\"text\":\"text 5\"}\n");
}

TEST_F(IndexFileTest, ABadRecordHasAReasonAndNoRow) {
  IndexEntry entry;
  entry.input = "in.txt";
  entry.line = 3;
  entry.reason = "in.txt:3: invalid UTF-8 at byte 1";
  EXPECT_EQ(line_of(entry),
            "{\"row\":null,\"input\":\"in.txt\",\"line\":3,\"reason\":\"in.txt:3: invalid UTF-8 at "
            "byte 1\"}\n");
}

TEST_F(IndexFileTest, TextsAreEscapedAndStrayBytesReplaced) {
  auto entry = good_entry(0);
  entry.text = std::string("\"\\\n\t\r\x01\0/\u00e9", 10);
  entry.input = "caf\xe9!";
  EXPECT_EQ(line_of(entry),
            "{\"row\":0,\"input\":\"caf\uFFFD!\",\"line\":1,\"tokens\":7,\"truncated\":false,"
            "\"text\":\"\\\"\\\\\\n\\t\\u000d\\u0001\\u0000/\u00e9\"}\n");
}

TEST_F(IndexFileTest, EntriesComeBackInTheOrderAskedFor) {
  auto escaped = good_entry(1);
  escaped.text = "a\nb\"\x01";
  escaped.id = "k\u00e9";
  IndexEntry bad;
  bad.reason = "no";
  const auto path = write("x.index.jsonl", line_of(good_entry(0)) + line_of(bad) +
                                               line_of(escaped) + line_of(good_entry(2)));
  const std::vector<std::uint64_t> rows{2, 1, 2};
  const auto entries = read_index_entries(path, rows);
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 3U);
  EXPECT_EQ((*entries)[0].text, "text 2");
  EXPECT_EQ((*entries)[0].line, 3U);
  EXPECT_EQ((*entries)[0].input, "in.txt");
  EXPECT_EQ((*entries)[0].token_count, 7U);
  EXPECT_EQ((*entries)[1].text, "a\nb\"\x01");
  EXPECT_EQ((*entries)[1].id, "k\u00e9");
  EXPECT_EQ((*entries)[2].row, 2U);
}

TEST_F(IndexFileTest, AMissingRowAndABrokenLineAreNamed) {
  const auto path = write("x.index.jsonl", line_of(good_entry(0)) + "{\"row\":1,\"line\":2}\n" +
                                               line_of(good_entry(2)) + "junk\n");
  const auto reading = [&](std::uint64_t row) {
    return read_index_entries(path, std::span(&row, 1));
  };
  EXPECT_TRUE(reading(2));
  EXPECT_EQ(reading(1).error().kind, ErrorKind::Corrupt);
  EXPECT_TRUE(reading(1).error().message.ends_with("x.index.jsonl:2: not a line of an index"));
  EXPECT_TRUE(reading(9).error().message.ends_with("x.index.jsonl:4: not a line of an index"));
  write("x.index.jsonl", line_of(good_entry(0)));
  EXPECT_EQ(reading(9).error().kind, ErrorKind::NotFound);
  EXPECT_EQ(read_index_entries(folder_ / "no", std::vector<std::uint64_t>{1}).error().kind,
            ErrorKind::NotFound);
}

TEST(IndexPathOf, StandsBesideTheOutput) {
  EXPECT_EQ(index_path_of("a/x.npy"), "a/x.npy.index.jsonl");
  EXPECT_EQ(index_path_of("x.jsonl"), "x.jsonl.index.jsonl");
}

}  // namespace
}  // namespace muster
