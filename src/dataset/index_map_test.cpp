#include "dataset/index_map.h"

#include <fmt/format.h>

#include "dataset/folder_fixture.h"
#include "dataset/memory_source.h"

namespace muster {
namespace {

using IndexMapTest = FolderTest;

std::string line_of(std::optional<std::uint64_t> row, std::string fields, std::string text) {
  IndexEntry entry;
  entry.row = row;
  entry.input = "in.jsonl";
  entry.line = 1;
  entry.fields = std::move(fields);
  entry.text = std::move(text);
  entry.reason = "no";
  std::string line;
  append_index_line(entry, line);
  return line;
}

TEST_F(IndexMapTest, KnowsWhereEachLineLiesAndWhatItKeeps) {
  // A text that looks like the key, and a bad record between rows.
  const auto content = line_of(0, R"({"lang":"de","n":[1,"x"]})", "one") +
                       line_of(std::nullopt, "", "") + line_of(1, "", R"("fields":{"lang":"no"})") +
                       line_of(2, R"({"lang":"fr"})", "three\nlines");
  for (const std::size_t read_size : {std::size_t{1}, std::size_t{7}, content.size()}) {
    SCOPED_TRACE(read_size);
    const auto map = map_index(std::make_unique<MemorySource>(content, read_size), "x");
    ASSERT_TRUE(map) << map.error().message;
    ASSERT_EQ(map->lines.size(), 3U);
    EXPECT_EQ(map->lines[0].offset, 0U);
    EXPECT_EQ(content.substr(map->lines[2].offset, map->lines[2].size + 1),
              line_of(2, R"({"lang":"fr"})", "three\nlines"));
    const auto* lang = map->fields.find("lang");
    ASSERT_NE(lang, nullptr);
    EXPECT_EQ(lang->of_row, (std::vector<std::uint32_t>{1, 0, 2}));
    EXPECT_EQ(lang->values[2][0].text, "fr");
    EXPECT_EQ(map->fields.find("n")->values[1][0].number, 1.0);
    EXPECT_EQ(map->fields.find("n")->values[1][1].text, "x");
  }
}

// docs/search.md names these sizes.
TEST_F(IndexMapTest, TakesWhatItsRowsTakeAndNoMore) {
  std::string content;
  for (std::uint64_t row = 0; row < 1000; ++row) {
    content += line_of(row, fmt::format(R"({{"n":{}}})", row), "a");
  }
  const auto map = map_index(std::make_unique<MemorySource>(content, 64), "x");
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(sizeof(IndexMap::Place), 16U);
  EXPECT_EQ(map->lines.capacity(), 1000U);
  EXPECT_EQ(map->fields.find("n")->of_row.capacity(), 1000U);
  EXPECT_EQ(map->fields.find("n")->values.capacity(), 1001U) << "with that of no value";
}

TEST_F(IndexMapTest, EntriesAreReadWhenTheyAreAskedFor) {
  const auto path = write("x.index.jsonl", line_of(0, "", "one") + line_of(1, R"({"a":1})", "two"));
  const auto index = IndexFile::open(path, 2);
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ((*index)->entry(1)->text, "two");
  EXPECT_EQ((*index)->entry(1)->fields, R"({"a":1})");
  EXPECT_EQ((*index)->entry(0)->text, "one");
  EXPECT_EQ((*index)->size_of(0), line_of(0, "", "one").size() - 1);
  write("x.index.jsonl", line_of(0, "", "one"));  // the same file, cut
  EXPECT_EQ((*index)->entry(1).error().kind, ErrorKind::Corrupt);
  const auto other = IndexFile::open(path, 2);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message, path + ": 1 rows, and the vectors have 2");
  EXPECT_EQ(IndexFile::open(folder_ / "no", 0).error().kind, ErrorKind::NotFound);
}

TEST_F(IndexMapTest, WhatIsNoIndexIsNamedWithItsLine) {
  const auto fault = [](const std::string& content) {
    const auto map = map_index(std::make_unique<MemorySource>(content, 64), "x");
    return map ? "" : map.error().message;
  };
  EXPECT_EQ(fault("junk\n"), "x:1: not a line of an index");
  EXPECT_EQ(fault(line_of(0, "", "a") + line_of(2, "", "b")), "x:2: row 2 where 1 follows");
  EXPECT_EQ(fault("{\"row\":0,\"fields\":[1]}\n"), "x:1: not a line of an index");
  EXPECT_EQ(fault("\xef\xbb\xbf" + line_of(0, "", "a")), "x:1: not a line of an index");
  EXPECT_EQ(fault(""), "");
}

}  // namespace
}  // namespace muster
