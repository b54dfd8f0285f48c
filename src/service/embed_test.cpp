// Whole runs over real files with real worker processes (tests/zero_worker in echo mode: a row is
// [sum of ids, token count, 0, …], so every row names its text).

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <numeric>

#include "base/file.h"
#include "dataset/vector_file.h"
#include "service/embed_fixture.h"
#include "tokenizer/tokenizer.h"

namespace muster {
namespace {

class EmbedTest : public EmbedFixture {
 protected:
  EmbedTest() : EmbedFixture("embed") {
    ::setenv("ZERO_WORKER", "echo", 1);
    options_.model = std::string(MUSTER_SOURCE_DIR) + "/src/service/testdata/tiny";
    options_.devices.resize(2);
    options_.devices[1].index = 1;
    options_.worker_program = std::string(MUSTER_BINARY_DIR) + "/bin/zero_worker";
    options_.cache_folder = folder_ / "cache";
    options_.batch_tokens = 256;
  }
  ~EmbedTest() override { ::unsetenv("ZERO_WORKER"); }

  static std::string many_lines(int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += "text " + std::to_string(i * 7919 % 10'007) +
              std::string(static_cast<std::size_t>(i % 9), 'a') + "\n";
    return text;
  }

  /// The row that the echo gives for a text.
  std::pair<float, float> expected_row(std::string_view text, std::uint32_t length_max = 32) const {
    const auto tokenizer =
        Tokenizer::load(std::filesystem::path(options_.model) / "tokenizer.json");
    auto scratch = (*tokenizer)->make_scratch();
    std::vector<TokenId> ids;
    (*tokenizer)->encode(text, length_max, *scratch, ids);
    return {static_cast<float>(std::accumulate(ids.begin(), ids.end(), 0U)),
            static_cast<float>(ids.size())};
  }
};

TEST_F(EmbedTest, WritesARowForEveryLineInInputOrder) {
  const auto content = many_lines(1000);
  write_input("in.txt", content);
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.text_count, 1000U);
  const auto vectors = VectorFile::open(options_.out);
  ASSERT_TRUE(vectors) << vectors.error().message;
  ASSERT_EQ((*vectors)->row_count(), 1000U);
  std::istringstream lines(content);
  std::string line;
  for (std::uint64_t row = 0; std::getline(lines, line); ++row) {
    SCOPED_TRACE(row);
    const auto [sum, count] = expected_row(line);
    EXPECT_EQ((*vectors)->row(row)[0], sum);
    EXPECT_EQ((*vectors)->row(row)[1], count);
  }
  const auto entry =
      read_index_entries(index_path_of(options_.out), std::vector<std::uint64_t>{999});
  ASSERT_TRUE(entry) << entry.error().message;
  EXPECT_EQ(entry->front().line, 1000U);
}

TEST_F(EmbedTest, PutsThePromptBeforeEveryText) {
  write_input("in.txt", "abc\n");
  options_.prompt_name = "query";  // "the "
  ASSERT_TRUE(run());
  const auto vectors = VectorFile::open(options_.out);
  EXPECT_EQ((*vectors)->row(0)[0], expected_row("the abc").first);
}

TEST_F(EmbedTest, RefusesAPromptThatTheModelLacks) {
  write_input("in.txt", "abc\n");
  options_.prompt_name = "qeury";
  EXPECT_EQ(run().error().message,
            "the model has no prompt of that name: qeury; did you mean query?");
}

TEST_F(EmbedTest, CountsWhatWasCut) {
  write_input("in.txt", "a b c d e f g h\na\n");
  options_.length_max = 6;  // four words between [CLS] and [SEP]
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.truncated_count, 1U);
  EXPECT_EQ(report->progress.token_count, 6U + 3U);
}

TEST_F(EmbedTest, AnEmptyInputGivesAnEmptyMatrix) {
  write_input("in.txt", "");
  ASSERT_TRUE(run());
  const auto vectors = VectorFile::open(options_.out);
  ASSERT_TRUE(vectors) << vectors.error().message;
  EXPECT_EQ((*vectors)->row_count(), 0U);
  EXPECT_EQ((*vectors)->dim(), 8U);
}

TEST_F(EmbedTest, ABadRecordEndsTheRunWithItsPlace) {
  write_input("in.jsonl", "{\"text\": \"a\"}\n{\"text\": 3}\n");
  const auto report = run();
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("in.jsonl:2"), std::string::npos) << report.error().message;
  EXPECT_TRUE(nothing_is_final());
}

TEST_F(EmbedTest, SkipBadKeepsAnIndexLineForIt) {
  write_input("in.jsonl", "{\"text\": \"a\"}\n{\"text\": 3}\n{\"text\": \"b\"}\n");
  options_.skip_bad = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.text_count, 2U);
  EXPECT_EQ(report->progress.bad_count, 1U);
  EXPECT_NE(read_file(index_path_of(options_.out))->find("\"row\":null"), std::string::npos);
}

TEST_F(EmbedTest, ATextThatKillsEveryWorkerIsNamedOrSkipped) {
  write_input("in.txt", many_lines(200) + "the\n" + many_lines(50));
  ::setenv("ZERO_WORKER", "echo abort_on=79", 1);  // "the" is the last of the 80 tokens
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("in.txt:201: this text alone makes the worker fail"),
            std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(nothing_is_final());

  options_.skip_bad = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.text_count, 250U);
  EXPECT_EQ(report->progress.bad_count, 1U);
}

TEST_F(EmbedTest, GoesOnAfterCancellationWithTheSameBytes) {
  write_input("in.txt", many_lines(60'000));
  ASSERT_TRUE(run());
  const auto undisturbed = output_bytes();
  std::filesystem::remove(options_.out);
  std::filesystem::remove(index_path_of(options_.out));

  const auto cancelled =
      run([this] { return last_.text_count > 5000 && last_.text_count < 60'000; });
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().kind, ErrorKind::Cancelled);
  EXPECT_TRUE(nothing_is_final());

  last_ = {};
  options_.resume = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->progress.resumed_count, 5000U);
  EXPECT_EQ(report->progress.resumed_count + report->progress.text_count, 60'000U);
  EXPECT_TRUE(output_bytes() == undisturbed);
}

TEST_F(EmbedTest, RefusesToResumeWithWhatHasChangedByName) {
  const auto content = many_lines(60'000);
  write_input("in.txt", content);
  ASSERT_FALSE(run([this] { return last_.text_count > 5000; }));
  options_.resume = true;

  options_.length_max = 16;
  auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_NE(refused.error().message.find("--max-length was 32 and is now 16"), std::string::npos)
      << refused.error().message;
  options_.length_max.reset();

  write_input("in.txt", "changed " + content.substr(8));
  refused = run();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the input has changed within its first"),
            std::string::npos)
      << refused.error().message;

  write_input("in.txt", "text\n");
  refused = run();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the input has become shorter"), std::string::npos)
      << refused.error().message;
}

TEST_F(EmbedTest, ResumingWhatWasNeverBegunBegins) {
  write_input("in.txt", "a\n");
  options_.resume = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.text_count, 1U);
  EXPECT_NE(notices_.find("starting from the beginning"), std::string::npos);
}

TEST_F(EmbedTest, StandardInputCannotBeResumed) {
  options_.input.inputs = {"-"};
  options_.resume = true;
  EXPECT_EQ(run().error().message, "standard input cannot be resumed: write it to a file first");
}

TEST_F(EmbedTest, MeasuresThePrecisionOnceForAModelAndProcessor) {
  write_input("in.txt", "a\n");
  ASSERT_TRUE(run());
  EXPECT_NE(notices_.find("measuring which precision"), std::string::npos);
  notices_.clear();
  const auto report = run();
  ASSERT_TRUE(report);
  EXPECT_EQ(notices_.find("measuring which precision"), std::string::npos) << notices_;
  EXPECT_EQ(report->precision_reason,
            "measured: this device computes in fp32 alone (kept from an earlier run)");
}

}  // namespace
}  // namespace muster
