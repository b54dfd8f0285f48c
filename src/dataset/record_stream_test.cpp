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
