#include "dataset/text_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/unique_fd.h"
#include "dataset/folder_fixture.h"

namespace muster {
namespace {

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

class TextReaderTest : public FolderTest {
 protected:
  // What a reader gives: the text of each record, or its fault in angle brackets, without the
  // folder.
  std::vector<std::string> records(TextReaderOptions options) {
    auto reader = TextReader::open(std::move(options));
    EXPECT_TRUE(reader);
    std::vector<std::string> all;
    TextRecord record;
    for (;;) {
      const auto more = (*reader)->next(record);
      if (!more) {
        all.push_back("error: " + without_folder(more.error().message));
        EXPECT_FALSE(*(*reader)->next(record)) << "after an error the reader is at its end";
        return all;
      }
      if (!*more) return all;
      const auto id = record.id.empty() ? "" : record.id + "=";
      const auto text = (record.is_conversation ? "chat " : "") + record.text;
      all.push_back(record.fault ? fmt::format("<{}>", without_folder(record.fault->message))
                                 : id + text);
    }
  }

  std::vector<std::string> records_of(const std::string& name, const std::string& content) {
    return records({.inputs = {write(name, content)}});
  }

  std::string without_folder(std::string message) const {
    const auto folder = folder_.string() + "/";
    for (auto at = message.find(folder); at != std::string::npos; at = message.find(folder)) {
      message.erase(at, folder.size());
    }
    return message;
  }
};

using Texts = std::vector<std::string>;

TEST_F(TextReaderTest, LinesEndInLineFeedOrBothAndTheLastNeedsNone) {
  EXPECT_EQ(records_of("a.txt", "one\ntwo\r\n\nfour"), (Texts{"one", "two", "four"}));
  EXPECT_EQ(records_of("a.txt", "one\n"), (Texts{"one"}));
  EXPECT_EQ(records_of("a.txt", ""), Texts{});
}

TEST_F(TextReaderTest, BlankLinesAreCountedAndPassedOver) {
  const auto path = write("a.txt", "one\n\n \t\r\ntwo\n\n");
  auto reader = TextReader::open({.inputs = {path, path}});
  ASSERT_TRUE(reader);
  TextRecord record;
  std::vector<std::uint64_t> lines;
  while (*(*reader)->next(record)) lines.push_back(record.line);
  EXPECT_EQ(lines, (std::vector<std::uint64_t>{1, 4, 1, 4}));
  EXPECT_EQ((*reader)->blank_count(), 6U);
  EXPECT_EQ(records({.inputs = {path}, .takes_blank_lines = true}),
            (Texts{"one", "", " \t", "two", ""}));
}

TEST_F(TextReaderTest, JsonThatNobodyNamedIsRefusedWithItsFormat) {
  const auto lines = write("a.txt", "\n{\"text\": \"a\"}\n");
  const auto packed = write("b.txt.gz", gzip("[\"a\", \"b\"]"));
  const auto refused = TextReader::open({.inputs = {lines}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(without_folder(refused.error().message),
            "a.txt: begins with a JSON object: --format jsonl reads its texts, --format lines "
            "takes each line as it is");
  const auto document = TextReader::open({.inputs = {packed}});
  ASSERT_FALSE(document);
  EXPECT_NE(document.error().message.find("is one JSON document"), std::string::npos);
  EXPECT_EQ(records({.inputs = {lines}, .format = TextFormat::Jsonl}), (Texts{"a"}));
  EXPECT_EQ(records({.inputs = {lines}, .format = TextFormat::Lines}),
            (Texts{"{\"text\": \"a\"}"}));
}

TEST_F(TextReaderTest, JsonFromAPipeIsRefusedWhenItIsRead) {
  const auto path = (folder_ / "pipe.txt").string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const UniqueFd both(::open(path.c_str(), O_RDWR | O_CLOEXEC));  // its own reader: nobody waits
  const std::string line = "{\"text\": \"a\"}\n";
  ASSERT_EQ(::write(both.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  auto reader = TextReader::open({.inputs = {path}});
  ASSERT_TRUE(reader);
  TextRecord record;
  const auto refused = (*reader)->next(record);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
}

TEST_F(TextReaderTest, Utf16IsRefusedByNameWhateverTheFormat) {
  const std::string wide("t\0e\0x\0t\0\n\0a\0", 12);
  const auto first_error = [](const TextReaderOptions& options) {
    const auto reader = TextReader::open(options);
    return reader ? "" : reader.error().message;
  };
  for (const std::string name : {"a.txt", "a.csv", "a.jsonl"}) {
    const auto path = write(name, wide);
    EXPECT_EQ(without_folder(first_error({.inputs = {path}})),
              name +
                  ": is UTF-16LE, and texts are read as UTF-8: iconv -f UTF-16LE -t UTF-8 makes "
                  "it so");
    EXPECT_NE(first_error({.inputs = {path}, .format = TextFormat::Lines}), "");
  }
  const auto marked = write("marked.txt", "\xff\xfe" + wide);
  EXPECT_NE(first_error({.inputs = {marked}}).find("is UTF-16LE"), std::string::npos);
  const auto packed = write("b.txt.gz", gzip(wide));
  EXPECT_NE(first_error({.inputs = {packed}}).find("is UTF-16LE"), std::string::npos);
}

TEST_F(TextReaderTest, Utf16FromAPipeIsRefusedWhenItIsRead) {
  const auto path = (folder_ / "pipe.txt").string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const UniqueFd both(::open(path.c_str(), O_RDWR | O_CLOEXEC));  // its own reader: nobody waits
  const std::string line("h\0i\0\n\0", 6);
  ASSERT_EQ(::write(both.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  auto reader = TextReader::open({.inputs = {path}});
  ASSERT_TRUE(reader);
  TextRecord record;
  const auto refused = (*reader)->next(record);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_NE(refused.error().message.find("is UTF-16LE"), std::string::npos);
}

TEST_F(TextReaderTest, AStandardInputThatIsClosedIsRefused) {
  const UniqueFd before(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  const UniqueFd write_only(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ::close(STDIN_FILENO);
  const auto closed = TextReader::open({.inputs = {"-"}});
  EXPECT_EQ(::dup2(write_only.get(), STDIN_FILENO), STDIN_FILENO);
  const auto unreadable = TextReader::open({.inputs = {"-"}});
  ::dup2(before.get(), STDIN_FILENO);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(closed.error().message,
            "standard input (-) is closed: give it the texts through a pipe or with <, or name a "
            "file");
  EXPECT_FALSE(unreadable);
}

TEST_F(TextReaderTest, AByteOrderMarkIsSkippedAtTheStartOnly) {
  EXPECT_EQ(records_of("a.txt", "\xef\xbb\xbfone\n\xef\xbb\xbftwo"),
            (Texts{"one", "\xef\xbb\xbftwo"}));
  EXPECT_EQ(records_of("a.csv", "\xef\xbb\xbftext\nx\n"), (Texts{"x"}));
  EXPECT_EQ(records_of("a.jsonl", "\xef\xbb\xbf{\"text\":\"x\"}"), (Texts{"x"}));
}

TEST_F(TextReaderTest, InvalidUtf8IsAFaultWithItsPlace) {
  EXPECT_EQ(records_of("a.txt", "one\ntwo\nthree\xff!\nfour"),
            (Texts{"one", "two", "<a.txt:3: invalid UTF-8 at byte 6>", "four"}));
}

TEST_F(TextReaderTest, ALineThatIsTooLongIsAFaultAndTheNextIsRead) {
  const auto path = write("a.txt", "12345\n123456\n" + std::string(1'000'000, 'x') + "\nend");
  EXPECT_EQ(
      records({.inputs = {path}, .record_size_max = 5}),
      (Texts{"12345", "<a.txt:2: longer than 5 bytes>", "<a.txt:3: longer than 5 bytes>", "end"}));
}

TEST_F(TextReaderTest, RecordsKnowTheirInputAndLine) {
  const auto a = write("a.txt", "one\ntwo\n");
  const auto b = write("b.jsonl", "\n{\"text\":\"three\"}\n");
  auto reader = TextReader::open({.inputs = {a, b}});
  ASSERT_TRUE(reader);
  EXPECT_EQ((*reader)->size_total(), 8U + 18U);
  TextRecord record;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> places;
  while (*(*reader)->next(record)) places.emplace_back(record.input_index, record.line);
  EXPECT_EQ(places, (std::vector<std::pair<std::uint32_t, std::uint64_t>>{{0, 1}, {0, 2}, {1, 2}}));
  EXPECT_EQ((*reader)->size_consumed(), 26U);
}

TEST_F(TextReaderTest, JsonLinesGiveTheFieldAndTheId) {
  const auto path =
      write("a.jsonl",
            "{\"text\":\"a\\u00e9\\n\",\"n\":1}\n \n{\"n\":18446744073709551615,\"text\":\"\"}\n"
            "{\"n\":\"k\",\"text\":\"old\",\"text\":\"new\"}\r\n");
  EXPECT_EQ(records({.inputs = {path}}), (Texts{"a\u00e9\n", "", "new"}));
  EXPECT_EQ(records({.inputs = {path}, .id_field = "n"}),
            (Texts{"1=a\u00e9\n", "18446744073709551615=", "k=new"}));
}

TEST_F(TextReaderTest, MessagesAreTakenAsJsonWhereTheyAreWanted) {
  const auto path = write("a.jsonl",
                          "{\"messages\": [ {\"role\": \"user\", \"content\": \"a \\\"b\\\"\"} ]}\n"
                          "{\"messages\":null,\"text\":\"plain\"}\n"
                          "{\"messages\":\"hi\",\"text\":\"b\"}\n"
                          "{\"text\":\"c\",\"messages\":[]}\n");
  const auto plain = write("b.txt", "d\n");
  EXPECT_EQ(records({.inputs = {path, plain}, .takes_messages = true}),
            (Texts{R"(chat [{"role":"user","content":"a \"b\""}])", "plain",
                   "<a.jsonl:3: field \"messages\" is a string, not a list of messages>", "chat []",
                   "d"}));
  EXPECT_EQ(records({.inputs = {path}, .is_field_asked_for = true, .takes_messages = true}),
            (Texts{"<a.jsonl:1: no field \"text\"; there is \"messages\"; --field names another>",
                   "plain", "b", "c"}))
      << "whoever names a field means it";
  EXPECT_EQ(records({.inputs = {path}})[3], "c") << "nobody wants them";
}

TEST_F(TextReaderTest, WhatIsAskedTwiceInAPromptIsAFault) {
  const auto path = write("a.jsonl",
                          "{\"text\":\"old\",\"n\":1,\"text\":\"new\"}\n"
                          "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
                          "{\"content\":\"b\",\"role\":\"user\",\"content\":\"c\"}]}\n"
                          "{\"text\":\"d\",\"inner\":{\"text\":\"e\"}}\n");
  const auto twice = "<a.jsonl:1: field \"text\" is given twice>";
  EXPECT_EQ(records({.inputs = {path}, .takes_messages = true}),
            (Texts{twice, "<a.jsonl:2: field \"messages[1].content\" is given twice>", "d"}));
  EXPECT_EQ(records({.inputs = {path}, .is_field_asked_for = true, .takes_messages = true})[0],
            twice);
  EXPECT_EQ(records({.inputs = {path}})[0], "new") << "of a corpus the last one counts";
}

TEST_F(TextReaderTest, WhatIsAskedTwiceWithinAPromptIsAFault) {
  const auto parts = write("parts.jsonl",
                           "{\"messages\":[{\"role\":\"user\",\"content\":[{\"text\":\"a\"},"
                           "{\"text\":\"b\",\"text\":\"c\"}]}]}\n");
  EXPECT_EQ(records({.inputs = {parts}, .takes_messages = true}),
            Texts{"<parts.jsonl:1: field \"messages[0].content[1].text\" is given twice>"});
  const auto path = write("a.jsonl",
                          "{\"doc\":{\"in\":{\"text\":\"a\",\"text\":\"b\"}}}\n"
                          "{\"doc\":{\"in\":{},\"in\":{\"text\":\"c\"}}}\n"
                          "{\"doc\":{\"in\":{\"text\":\"d\"}},\"other\":{\"n\":1,\"n\":2}}\n"
                          "{\"doc.in.text\":\"e\",\"doc\":{\"in\":1,\"in\":2}}\n");
  TextReaderOptions options{
      .inputs = {path}, .field = "doc.in.text", .is_field_asked_for = true, .takes_messages = true};
  const auto twice = "<a.jsonl:1: field \"doc.in.text\" is given twice>";
  const auto outer = "<a.jsonl:2: field \"doc.in\" is given twice>";
  EXPECT_EQ(records(options), (Texts{twice, outer, "d", "e"})) << "what nobody asks may be so";
  options.keep = {"other.n"};
  EXPECT_EQ(records(options)[2], "<a.jsonl:3: field \"other.n\" is given twice>");
  options.takes_messages = false;
  EXPECT_EQ(records(options)[0], "b") << "of a corpus the last one counts";
}

TEST_F(TextReaderTest, ABrokenJsonLineIsAFaultThatSaysWhy) {
  const auto found = records_of(
      "a.jsonl",
      "{\"text\":\"ok\"}\n{\"text\": \"half\n[\"text\"]\n{\"text\":7}\n{\"txet\":\"x\"}\n"
      "{\"body\":1,\"title\":2}\n{\"text\":null}\n{\"text\":\"a\"} {}\n"
      "{\"text\":\"a\",\"n\":[1,,2]}\n{\"text\":\"\\ud800\"}\n\"\xc0\"\n{}\nend");
  ASSERT_EQ(found.size(), 13U);
  EXPECT_EQ(found[0], "ok");
  EXPECT_TRUE(found[1].starts_with("<a.jsonl:2: not JSON: ")) << found[1];
  EXPECT_EQ(found[2], "<a.jsonl:3: not a JSON object but an array>");
  EXPECT_EQ(found[3], "<a.jsonl:4: field \"text\" is a number, not a string>");
  EXPECT_EQ(found[4], "<a.jsonl:5: no field \"text\"; nearest is \"txet\"; --field names another>");
  EXPECT_EQ(found[5],
            "<a.jsonl:6: no field \"text\"; there is \"body\", \"title\"; --field names "
            "another>");
  EXPECT_EQ(found[6], "<a.jsonl:7: field \"text\" is null, not a string>");
  EXPECT_TRUE(found[7].starts_with("<a.jsonl:8: not JSON: ")) << found[7];
  EXPECT_TRUE(found[8].starts_with("<a.jsonl:9: not JSON: ")) << found[8];
  EXPECT_TRUE(found[9].starts_with("<a.jsonl:10: ")) << found[9];
  EXPECT_EQ(found[10], "<a.jsonl:11: invalid UTF-8 at byte 2>");
  EXPECT_EQ(found[11], "<a.jsonl:12: no field \"text\">");
  EXPECT_TRUE(found[12].starts_with("<a.jsonl:13: not JSON: ")) << found[12];
}

TEST_F(TextReaderTest, CsvCellsMayHoldQuotesSeparatorsAndLineEnds) {
  const auto path =
      write("a.csv",
            "id,text,x\r\n1,\"a, \"\"b\"\"\",\r\n2,\"two\nlines\",y\n\n3,in\"ner,\"\"\n4,\"\",z\n");
  EXPECT_EQ(records({.inputs = {path}, .id_field = "id"}),
            (Texts{"1=a, \"b\"", "2=two\nlines", "3=in\"ner", "4="}));
  auto reader = TextReader::open({.inputs = {path}});
  TextRecord record;
  std::vector<std::uint64_t> lines;
  while (*(*reader)->next(record)) lines.push_back(record.line);
  EXPECT_EQ(lines, (std::vector<std::uint64_t>{2, 3, 6, 7}));
}

TEST_F(TextReaderTest, TabsSeparateTsv) {
  EXPECT_EQ(records_of("a.tsv", "n\ttext\n1\ta, b\n2\t\"c\td\"\n"), (Texts{"a, b", "c\td"}));
}

TEST_F(TextReaderTest, ABrokenCsvRowIsAFaultAndTheNextIsRead) {
  EXPECT_EQ(records_of("a.csv", "text,n\na\nb,1,2\n\"c\"d,1\ne\xff,1\nf,1\n\"g,1\n"),
            (Texts{"<a.csv:2: a row of 1 cells where the header has 2>",
                   "<a.csv:3: a row of 3 cells where the header has 2>",
                   "<a.csv:4: text behind a closing quote: cell 1>",
                   "<a.csv:5: column \"text\": invalid UTF-8 at byte 2>", "f",
                   "<a.csv:7: a quote is never closed: cell 1, opened on line 7>"}));
  EXPECT_EQ(records({.inputs = {write("a.csv", "text\n" + std::string(90, 'x') + "\nend\n")},
                     .record_size_max = 80}),
            (Texts{"<a.csv:2: longer than 80 bytes>", "end"}));
}

TEST_F(TextReaderTest, ACsvWithoutTheColumnNamesTheNearest) {
  EXPECT_EQ(
      records_of("a.csv", "id,texts\n1,a\n"),
      (Texts{"error: a.csv:1: no column \"text\"; nearest is \"texts\"; --field names another"}));
  EXPECT_EQ(records_of("a.csv", "id;text\n1;a\n"),
            (Texts{"error: a.csv:1: its columns are parted by semicolons, which are not read: part "
                   "them by commas (or by tabs, for --format tsv)"}));
  EXPECT_EQ(records_of("a.csv", "id\ttext\n1\ta\n"),
            (Texts{"error: a.csv:1: its columns are parted by tabs: --format tsv reads them"}));
  EXPECT_EQ(records_of("a.csv", "text,text\n1,a\n"),
            (Texts{"error: a.csv:1: two columns are named \"text\""}));
  EXPECT_EQ(records_of("a.csv", ""), Texts{});
}

TEST_F(TextReaderTest, AFieldThatNoRecordHadIsNamedAtTheEnd) {
  const auto first = write("a.jsonl", R"({"text":"a","lang":"de","year":1})");
  const auto second = write("b.jsonl", R"({"text":"b","tag":"x"})");
  auto reader =
      *TextReader::open({.inputs = {first, second}, .keep = {"lang", "tag", "yeer", "year"}});
  EXPECT_TRUE(reader->fields_not_met().empty()) << "nothing has been read";
  TextRecord record;
  while (*reader->next(record)) continue;
  EXPECT_EQ(reader->fields_not_met(),
            (Texts{"no field \"yeer\"; nearest is \"year\"; --keep names another"}));
}

TEST_F(TextReaderTest, APlainLineHasNoOtherFieldToKeep) {
  const auto lines = write("a.txt", "one\n");
  EXPECT_TRUE(TextReader::open({.inputs = {lines}, .keep = {"text"}}));
  const auto refused = TextReader::open({.inputs = {lines}, .keep = {"text", "lang"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            lines +
                ": a plain line has no field \"lang\" to keep, only \"text\": --format says "
                "what else it is");
}

// A slip in the name makes plain lines of it.
TEST_F(TextReaderTest, AFileThatIsNotThereIsToldBeforeItsFields) {
  const auto corpus = write("corpus.jsonl", R"({"body":"a"})");
  const auto slip = corpus.substr(0, corpus.size() - 3) + "n";  // corpus.jsn
  const auto objects = write("corpus.json", R"({"body":"a"})");
  TextReaderOptions by_text;
  by_text.field = "body";
  by_text.is_field_asked_for = true;
  TextReaderOptions by_id;
  by_id.id_field = "key";
  by_id.is_id_field_asked_for = true;
  for (auto options : {by_text, by_id, TextReaderOptions{.keep = {"lang"}}}) {
    options.inputs = {slip};
    const auto missing = TextReader::open(options);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().kind, ErrorKind::NotFound) << missing.error().message;
    EXPECT_EQ(missing.error().message.find(slip + ": no such file; nearest is "), 0U)
        << missing.error().message;
    options.inputs = {objects};
    const auto json = TextReader::open(options);
    ASSERT_FALSE(json);
    EXPECT_EQ(json.error().message.find(objects + ": begins with a JSON object"), 0U)
        << json.error().message;
  }
}

TEST_F(TextReaderTest, GzipAndZstdAreKnownByTheirFirstBytes) {
  const std::string long_text(3'000'000, 'x');
  for (const auto& packed : {gzip("one\ntw") + gzip("") + gzip("o\n" + long_text),
                             zstd("one\ntw") + zstd("") + zstd("o\n" + long_text)}) {
    EXPECT_EQ(records_of("a.bin", packed), (Texts{"one", "two", long_text}));
    EXPECT_EQ(records_of("a.jsonl.gz", "{\"text\":\"plain\"}"), (Texts{"plain"}));
  }
  EXPECT_EQ(records_of("b.csv.zst", zstd("text\nx\n")), (Texts{"x"}));
  EXPECT_EQ(records_of("b.gz", gzip("x") + std::string(512, '\0')), (Texts{"x"}));
  // A skippable frame: magic, length 3, three bytes (RFC 8878 section 3.1.2).
  EXPECT_EQ(records_of("b.zst", std::string("\x50\x2a\x4d\x18\x03\0\0\0abc", 11) + zstd("x")),
            (Texts{"x"}));
}

TEST_F(TextReaderTest, ABrokenCompressedStreamIsCorrupt) {
  const auto gz = gzip("one\n" + std::string(1000, 'x'));
  EXPECT_EQ(records_of("a.gz", gz.substr(0, gz.size() - 4)),
            (Texts{"one", "error: a.gz: broken gzip stream: it ends early"}));
  EXPECT_EQ(records_of("a.gz", gz + "tail"),
            (Texts{"one", "error: a.gz: broken gzip stream: incorrect header check"}));
  const auto zst = zstd("one\n" + std::string(1000, 'x'));
  EXPECT_EQ(records_of("a.zst", zst.substr(0, zst.size() - 4)).back(),
            "error: a.zst: broken zstd stream: it ends early");
  auto reader = TextReader::open({.inputs = {write("a.gz", gz.substr(0, 5))}});
  TextRecord record;
  EXPECT_EQ((*reader)->next(record).error().kind, ErrorKind::Corrupt);
}

TEST_F(TextReaderTest, OpeningChecksEveryInput) {
  const auto good = write("corpus.txt", "x\n");
  const auto missing = TextReader::open({.inputs = {good, (folder_ / "corpsu.txt").string()}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::NotFound);
  EXPECT_EQ(without_folder(missing.error().message),
            "corpsu.txt: no such file; nearest is corpus.txt");
  EXPECT_EQ(TextReader::open({.inputs = {folder_.string()}}).error().kind,
            ErrorKind::InvalidArgument);
  EXPECT_EQ(TextReader::open({.inputs = {"-", good, "-"}}).error().kind,
            ErrorKind::InvalidArgument);
  EXPECT_EQ(TextReader::open({.inputs = {}}).error().kind, ErrorKind::InvalidArgument);
}

TEST_F(TextReaderTest, WhatIsNeitherTextNorUnpackedHereIsNamed) {
  using namespace std::string_literals;
  struct Case {
    const char* name;
    std::string content;
    const char* message;
  };
  // First bytes as xz 5.4, bzip2 1.0 and zip 3.0 write them.
  for (const auto& [name, content, message] :
       {Case{"a.txt.xz", "\xfd"s + "7zXZ\0\0\4\xe6"s,
             "a.txt.xz: is compressed by xz, and gzip and zstd are what is read: xz -dc FILE | "
             "muster ... - hands its text on"},
        Case{"a.jsonl.bz2", "BZh91AY&SY\x01",
             "a.jsonl.bz2: is compressed by bzip2, and gzip and zstd are what is read: bzip2 -dc "
             "FILE | muster ... - hands its text on"},
        Case{"a.zip", "PK\3\4\x14\0"s,
             "a.zip: is a zip archive: unpack it, and name the files in it"}}) {
    const auto opened = TextReader::open({.inputs = {write(name, content)}});
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(without_folder(opened.error().message), message);
  }
  EXPECT_EQ(records_of("a.txt", "BZh9 is how bzip2 begins\n"), (Texts{"BZh9 is how bzip2 begins"}));
}

TEST_F(TextReaderTest, ARecordThatEndsARunSaysHowToGoOn) {
  TextRecord record;
  record.fault = Error{ErrorKind::InvalidArgument, "a.txt:3: longer than 80 bytes"};
  EXPECT_EQ(stopping_fault(record).message,
            "a.txt:3: longer than 80 bytes; --skip-bad goes on without such records");
}

TEST_F(TextReaderTest, ProgressCountsWhatWasGivenAndNotWhatWaitsInABuffer) {
  const auto after_first = [](const std::string& path) {
    auto reader = TextReader::open({.inputs = {path}});
    EXPECT_TRUE(reader) << (reader ? "" : reader.error().message);
    TextRecord record;
    EXPECT_TRUE(*(*reader)->next(record));
    return (*reader)->size_consumed();
  };
  EXPECT_EQ(after_first(write("a.txt", "one\ntwo\nthree\n")), 4U);
  EXPECT_EQ(after_first(write("a.csv", "text,n\none,1\ntwo,2\n")), 13U);
  // Of a compressed file in proportion: a hundredth of its lines.
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "one\n";
  const auto packed = gzip(lines);
  EXPECT_EQ(after_first(write("a.gz", packed)), packed.size() / 100);
}

TEST_F(TextReaderTest, ProgressCountsTheBytesOnDisk) {
  const auto packed = gzip(std::string(100'000, 'x'));
  auto reader = TextReader::open({.inputs = {write("a.gz", packed), write("b.txt", "one\n")}});
  TextRecord record;
  while (*(*reader)->next(record)) {
  }
  EXPECT_EQ((*reader)->size_total(), packed.size() + 4);
  EXPECT_EQ((*reader)->size_consumed(), packed.size() + 4);
  const auto pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  reader = TextReader::open({.inputs = {pipe, write("b.txt", "one\n")}});
  EXPECT_EQ((*reader)->size_total(), std::nullopt);
}

TEST_F(TextReaderTest, StandardInputIsReadAndSniffed) {
  const auto path = write("in", gzip("one\nt\xffwo\n"));
  const UniqueFd kept(::dup(STDIN_FILENO));
  const UniqueFd file(::open(path.c_str(), O_RDONLY));
  ASSERT_EQ(::dup2(file.get(), STDIN_FILENO), STDIN_FILENO);
  EXPECT_EQ(TextReader::open({.inputs = {"-"}}).operator*()->size_total(), std::nullopt);
  EXPECT_EQ(records({.inputs = {"-"}}),
            (Texts{"one", "<standard input:2: invalid UTF-8 at byte 2>"}));
  ::dup2(kept.get(), STDIN_FILENO);
}

}  // namespace
}  // namespace muster
