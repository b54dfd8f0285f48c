// Whole runs whose records have ids and fields that are kept, and runs into a stream; the workers
// are stand_ins/zero_worker in echo mode.

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "dataset/output_record.h"
#include "dataset/vector_file.h"
#include "jobs/embed_fixture.h"

namespace muster {
namespace {

class EmbedFieldsTest : public EchoEmbedFixture {
 protected:
  EmbedFieldsTest() : EchoEmbedFixture("embed_fields", 1) { options_.precision = Precision::Fp32; }

  /// Every third record has a language, every record a year and an id, and each seventh is no good.
  static std::string many_records(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      const auto words = "\"text " + std::to_string(i * 7919 % 10'007) + '"';
      text += R"({"text":)" + (i % 7 == 5 ? std::to_string(i) : words);
      text += R"(,"id":)" + std::to_string(i);
      text += R"(,"meta":{"year":)" + std::to_string(1990 + i % 40) + '}';
      if (i % 3 == 0) text += i % 2 == 0 ? R"(,"lang":"de")" : R"(,"lang":"fr")";
      text += "}\n";
    }
    return text;
  }

  void keep() {
    options_.input.id_field = "id";
    options_.input.keep = {"lang", "meta.year"};
  }

  CorpusStream stream(StreamFormat format) {
    return {.format = format,
            .name = "standard output",
            .write = [this](std::string_view piece) -> Status {
              written_ += piece;
              return Done{};
            },
            .flush = []() -> Status { return Done{}; }};
  }

  std::string written_;
};

TEST_F(EmbedFieldsTest, KeptFieldsAreInTheIndexAndInTheRecord) {
  write_input("in.jsonl", "{\"text\":\"a\",\"lang\":\"de\",\"n\":[1,2]}\n{\"text\":\"b\"}\n");
  options_.input.keep = {"lang", "n", "nothing"};
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  const auto entries =
      read_index_entries(index_path_of(options_.out), std::vector<std::uint64_t>{0, 1});
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ((*entries)[0].fields, R"({"lang":"de","n":[1,2]})");
  EXPECT_EQ((*entries)[1].fields, "");
  const auto record = read_output_record(record_path_of(options_.out));
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->kept, options_.input.keep);
  EXPECT_NE(notices_.find("no record has a field of --keep: no field \"nothing\"; there is "
                          "\"text\", \"lang\", \"n\"; --keep names another\n"),
            std::string::npos)
      << notices_;
}

TEST_F(EmbedFieldsTest, ResumingWithFieldsIsExactInEveryFormat) {
  write_input("in.jsonl", many_records(20'000));
  keep();
  options_.skip_bad = true;
  for (const char* name : {"out.npy", "out.jsonl"}) {
    SCOPED_TRACE(name);
    options_.out = folder_ / name;
    options_.resume = false;
    const auto whole = run();
    ASSERT_TRUE(whole) << whole.error().message;
    const auto undisturbed = output_bytes();
    std::filesystem::remove(options_.out);
    last_ = {};
    ASSERT_FALSE(run([this] { return last_.text_count > 4000 && last_.text_count < 17'000; }));
    last_ = {};
    options_.resume = true;
    const auto resumed = run();
    ASSERT_TRUE(resumed) << resumed.error().message;
    EXPECT_GT(resumed->progress.resumed_count, 0U);
    EXPECT_TRUE(output_bytes() == undisturbed);
  }
}

TEST_F(EmbedFieldsTest, AResumedRunKeepsTheSameFields) {
  const auto records = many_records(20'000);
  write_input("in.jsonl", records);
  keep();
  options_.skip_bad = true;
  ASSERT_FALSE(run([this] { return last_.text_count > 4000; }));
  options_.resume = true;
  options_.input.keep = {"lang"};
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--keep was lang, meta.year and is now lang"),
            std::string::npos)
      << refused.error().message;
  options_.input.keep.clear();
  EXPECT_NE(run().error().message.find("--keep was lang, meta.year and is now not set"),
            std::string::npos);
  // One field of that name is not two.
  options_.input.keep = {"lang, meta.year"};
  EXPECT_NE(
      run().error().message.find("--keep was lang, meta.year and is now [\"lang, meta.year\"]"),
      std::string::npos);
  options_.input.keep = {"lang", "meta.year"};
  auto changed = records;
  changed.replace(changed.find("1990"), 4, "1890");  // of the first record
  write_input("in.jsonl", changed);
  EXPECT_NE(run().error().message.find("the input has changed within its first"),
            std::string::npos);
  write_input("in.jsonl", records);
  EXPECT_TRUE(run());
}

TEST_F(EmbedFieldsTest, ARunWithoutFieldsIsTheOneOfEarlierVersions) {
  write_input("in.jsonl", "{\"text\":\"a\",\"lang\":\"de\"}\n");
  ASSERT_TRUE(run());
  const auto record = read_file(record_path_of(options_.out));
  EXPECT_EQ(record->find("keep"), std::string::npos) << *record;
  EXPECT_EQ(record->find("kept"), std::string::npos) << *record;
  EXPECT_EQ(record->find("form of a line"), std::string::npos) << *record;
}

TEST_F(EmbedFieldsTest, LinesOfJsonAreObjectsWhereIdsOrFieldsAreAskedFor) {
  write_input("in.jsonl",
              "{\"text\":\"a\",\"id\":\"x\",\"lang\":\"de\"}\n{\"text\":\"b\",\"id\":\"y\"}\n");
  options_.out = folder_ / "out.jsonl";
  ASSERT_TRUE(run());
  EXPECT_TRUE(read_file(options_.out)->starts_with("[")) << "bare arrays as ever";
  const auto bare = VectorFile::open(options_.out);
  const std::vector<float> row((*bare)->row(1).begin(), (*bare)->row(1).end());
  options_.input.id_field = "id";
  options_.input.keep = {"lang"};
  ASSERT_TRUE(run());
  std::istringstream lines(*read_file(options_.out));
  std::string line;
  std::getline(lines, line);
  const auto first = nlohmann::json::parse(line);
  EXPECT_EQ(first["id"], "x");
  EXPECT_EQ(first["fields"]["lang"], "de");
  EXPECT_EQ(first["embedding"].size(), 8U);
  std::getline(lines, line);
  const auto second = nlohmann::json::parse(line);
  EXPECT_EQ(second["id"], "y");
  EXPECT_FALSE(second.contains("fields"));
  const auto vectors = VectorFile::open(options_.out);
  ASSERT_TRUE(vectors) << vectors.error().message;
  EXPECT_EQ(std::vector<float>((*vectors)->row(1).begin(), (*vectors)->row(1).end()), row);
}

TEST_F(EmbedFieldsTest, ADuplicateIdIsCountedAndTheFirstNamedAlsoAfterAResumption) {
  std::string records;
  for (int i = 0; i < 20'000; ++i) {
    const int id = i == 6 || i == 19'000 ? 3 : i;
    records += R"({"text":"a","id":)" + std::to_string(id) + "}\n";
  }
  write_input("in.jsonl", records);
  options_.input.id_field = "id";
  ASSERT_FALSE(run([this] { return last_.text_count > 4000; }));
  options_.resume = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->progress.resumed_count, 0U);
  EXPECT_EQ(report->progress.duplicate_id_count, 2U);
  EXPECT_TRUE(report->first_duplicate.ends_with("in.jsonl:7")) << report->first_duplicate;
  EXPECT_TRUE(report->are_all_ids_compared);
}

TEST_F(EmbedFieldsTest, AStreamGetsTheRowsOfAFileAndKeepsNothing) {
  write_input("in.jsonl", many_records(1000));
  keep();
  options_.skip_bad = true;
  options_.out = folder_ / "out.jsonl";
  ASSERT_TRUE(run());
  const auto file = *read_file(options_.out);
  std::filesystem::remove_all(folder_ / "out.jsonl");
  options_.out.clear();
  options_.stream = stream(StreamFormat::Jsonl);
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->out, "standard output");
  EXPECT_TRUE(report->index.empty());
  // The lines of the file, and one for each bad record.
  std::istringstream lines(written_);
  std::string good;
  std::uint64_t bad_count = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool is_bad = line.starts_with(R"({"embedding":null,"reason":")");
    bad_count += is_bad ? 1 : 0;
    if (!is_bad) good += line + "\n";
  }
  EXPECT_TRUE(good == file);
  EXPECT_EQ(bad_count, 143U);  // of 1,000 those whose rest by 7 is 5
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const auto name = entry.path().filename().string();
    EXPECT_TRUE(name == "in.jsonl" || name == "cache" || name.starts_with("out.jsonl.")) << name;
  }
}

TEST_F(EmbedFieldsTest, AStreamOfBareNumbersIsTheFileWithoutItsHead) {
  write_input("in.txt", "a\nb c\nd\n");
  ASSERT_TRUE(run());
  const auto file = *read_file(options_.out);
  options_.stream = stream(StreamFormat::F32);
  ASSERT_TRUE(run());
  EXPECT_TRUE(written_ == file.substr(128));
}

TEST_F(EmbedFieldsTest, AStreamCannotBeResumedAndANumberIsNoReason) {
  write_input("in.txt", "a\n");
  options_.stream = stream(StreamFormat::F32);
  options_.resume = true;
  EXPECT_EQ(run().error().message,
            "standard output keeps nothing that --resume could find: name a file with -o");
  options_.resume = false;
  options_.skip_bad = true;
  EXPECT_EQ(run().error().message,
            "bare numbers cannot say which records --skip-bad left out: write jsonl");
}

TEST_F(EmbedFieldsTest, ARunThatEndsEarlySaysHowManyRowsAStreamHas) {
  write_input("in.jsonl", "{\"text\":\"a\"}\n");
  options_.input.inputs.push_back((folder_ / "second.jsonl").string());
  std::string records;
  for (int i = 0; i < 20'000; ++i) records += "{\"text\":\"b\"}\n";
  const auto first = options_.input.inputs;
  write_input("second.jsonl", records + "{\"text\":7}\n");
  options_.input.inputs = first;
  options_.stream = stream(StreamFormat::Jsonl);
  const auto report = run();
  ASSERT_FALSE(report);
  const auto& message = report.error().message;
  EXPECT_NE(message.find("second.jsonl:20001: field \"text\" is a number, not a string; --skip-bad "
                         "goes on without such records; "),
            std::string::npos)
      << message;
  EXPECT_TRUE(message.ends_with(" rows were written before that")) << message;
}

// As of a full disk: what had gone into a buffer has not come through.
TEST_F(EmbedFieldsTest, OfAStreamThatFailsNoRowsAreSaidToBeWritten) {
  write_input("in.txt", "a\nb\nc\n");
  options_.stream = stream(StreamFormat::Jsonl);
  options_.stream->flush = []() -> Status {
    return Error{ErrorKind::ResourceExhausted,
                 "standard output: cannot write: No space left on device"};
  };
  const auto report = run();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message, "standard output: cannot write: No space left on device");
}

}  // namespace
}  // namespace muster
