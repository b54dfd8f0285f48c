#include "dataset/record_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "dataset/line_splitter.h"
#include "dataset/stream_fuzz.h"

namespace muster {
namespace {

using Records = std::vector<std::string>;

// Every end of a read that there can be: inside a byte order mark, a "\r\n", a doubled quote, a
// character.
template <typename MakeStream>
void expect_records(const std::string& bytes, const Records& expected, MakeStream make_stream) {
  for (std::size_t read_size = 1; read_size <= bytes.size(); ++read_size) {
    SCOPED_TRACE(read_size);
    EXPECT_EQ(fuzz_records(bytes, read_size, make_stream), expected);
  }
}

RecordStreamOptions options() {
  return {.input = "in", .field = "text", .id_field = "id", .record_size_max = 30};
}

TEST(RecordStream, LinesDoNotDependOnWhereAReadEnds) {
  expect_records("\xef\xbb\xbfone\r\n\u00e9\r\r\n" + std::string(31, 'x') + "\r\n" +
                     std::string(30, 'y') + "\r\nend",
                 {"=one@1", "=\u00e9\r@2", "longer than 30 bytes@3",
                  "=" + std::string(30, 'y') + "@4", "=end@5"},
                 [](auto source) { return make_lines_stream(std::move(source), options()); });
}

TEST(RecordStream, JsonLinesDoNotDependOnWhereAReadEnds) {
  expect_records(
      "\xef\xbb\xbf{\"id\":1,\"text\":\"\u00e9\\n\"}\r\n\r\n{\"text\":\"\"}\n{\"id\":\"" +
          std::string(30, 'x') + "\"}\n{\"text\":\"b\",\"id\":-2}",
      {"1=\u00e9\n@1", "no field \"id\"; there is \"text\"; --id-field names another@3",
       "longer than 30 bytes@4", "-2=b@5"},
      [](auto source) { return make_jsonl_stream(std::move(source), options()); });
}

TEST(RecordStream, CsvDoesNotDependOnWhereAReadEnds) {
  expect_records("\xef\xbb\xbfid,\"text\"\r\n1,\"a\"\"b\r\nc\"\r\n\r\n2,d\re\r\n3,\"f\"g\r\n4,\"" +
                     std::string(30, 'x') + "\"\r\n5,\"h\"",
                 {"1=a\"b\r\nc@2", "2=d\re@5", "text behind a closing quote: cell 2@6",
                  "longer than 30 bytes@7", "5=h@8"},
                 [](auto source) { return make_csv_stream(std::move(source), options(), ','); });
}

RecordStreamOptions keeping(std::vector<std::string> names) {
  return {.input = "in", .field = "text", .keep = std::move(names), .record_size_max = 400};
}

TEST(RecordStream, KeptFieldsOfJsonAreScalarsAndListsOfThem) {
  expect_records(
      R"({"text":"a","lang":"d\"e","year":2020,"n":1.50,"ok":true,"tags":["x",2,false]})"
      "\n"
      R"({"text":"b","lang":null,"tags":[],"year":-0.5e3})"
      "\n"
      R"({"text":"c"})"
      "\n"
      R"({"text":"d","lang":{"code":"de"}})"
      "\n"
      R"({"text":"e","tags":[["x"]]})",
      {R"(=a{"lang":"d\"e","year":2020,"n":1.5,"ok":true,"tags":["x",2,false]}@1)",
       R"(=b{"year":-500,"tags":[]}@2)", "=c@3",
       R"(field "lang" is an object, not a string, a number, true, false or a list of these@4)",
       R"(field "tags" is an array, not a string, a number, true, false or a list of these@5)"},
      [](auto source) {
        return make_jsonl_stream(std::move(source), keeping({"lang", "year", "n", "ok", "tags"}));
      });
}

TEST(RecordStream, DotsLeadIntoObjectsAndAKeyWithDotsGoesFirst) {
  RecordStreamOptions nested = keeping({"meta.lang", "a.b.c"});
  nested.field = "doc.text";
  nested.id_field = "doc.id";
  expect_records(R"({"doc":{"text":"in","id":7},"meta":{"lang":"de"},"a":{"b.c":1},"a.b":{"c":2}})"
                 "\n"
                 R"({"doc.text":"flat","doc":{"text":"in","id":"x"}})"
                 "\n"
                 R"({"doc":{"txt":"a"}})"
                 "\n"
                 R"({"doc":"a"})",
                 {R"(7=in{"meta.lang":"de","a.b.c":1}@1)", "x=flat@2",
                  R"(no field "doc.text"; nearest is "doc.txt"; --field names another@3)",
                  R"(no field "doc.text"; there is "doc"; --field names another@4)"},
                 [&](auto source) { return make_jsonl_stream(std::move(source), nested); });
}

TEST(RecordStream, KeptColumnsAreTextAndAnEmptyCellIsNothing) {
  expect_records(
      "text,year,lang\na,2020,\"d,e\"\nb,,\n\xe9,1,2\nd,\xe9,x\n",
      {R"(=a{"year":"2020","text":"a","lang":"d,e"}@2)", R"(=b{"text":"b"}@3)",
       "column \"text\": invalid UTF-8 at byte 1@4", "column \"year\": invalid UTF-8 at byte 1@5"},
      [](auto source) {
        return make_csv_stream(std::move(source), keeping({"year", "text", "lang"}), ',');
      });
  expect_records(
      "text,year\na,2020\n",
      {"in:1: no column \"yaer\"; nearest is \"year\"; --keep names another"},
      [](auto source) { return make_csv_stream(std::move(source), keeping({"yaer"}), ','); });
}

TEST(RecordStream, APlainLineIsItsOwnField) {
  expect_records("a\"b\nc", {R"(=a"b{"text":"a\"b"}@1)", R"(=c{"text":"c"}@2)"}, [](auto source) {
    return make_lines_stream(std::move(source), keeping({"text"}));
  });
}

// A device such as /dev/zero, or a pipe: without an end of a line, and without an end.
class EndlessSource final : public ByteSource {
 public:
  Result<std::size_t> read(std::span<char> buffer) override { return buffer.size(); }
  std::uint64_t size_consumed() const override { return 0; }
};

TEST(RecordStream, ALineWithoutAnEndIsToldAndThenEndsTheInput) {
  LineSplitter lines(std::make_unique<EndlessSource>(), 1 << 20);
  Line line;
  const auto first = lines.next(line);
  ASSERT_TRUE(first && *first);
  EXPECT_TRUE(line.is_too_long);
  EXPECT_EQ(line.number, 1U);
  const auto second = lines.next(line);
  ASSERT_FALSE(second);
  EXPECT_TRUE(second.error().message.starts_with("line 1 has no end within "))
      << second.error().message;
}

}  // namespace
}  // namespace muster
