// Whole runs over real files with real worker processes (stand_ins/zero_worker in echo mode: a row
// is [sum of ids, token count, 0, …], so every row names its text).

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <numeric>

#include "base/file.h"
#include "base/full_disk_fixture.h"
#include "base/unique_fd.h"
#include "dataset/vector_file.h"
#include "jobs/embed_fixture.h"
#include "jobs/run_output.h"
#include "tokenizer/tokenizer.h"

namespace muster {
namespace {

class EmbedTest : public EchoEmbedFixture {
 protected:
  EmbedTest() : EchoEmbedFixture("embed", 2) {}

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

// They are done at once, when no worker has said yet how long a row is.
TEST_F(EmbedTest, BadRecordsMayComeFirst) {
  write_input("in.txt", "a\xff\nb\xff\nthird\n");
  options_.skip_bad = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.bad_count, 2U);
  const auto vectors = VectorFile::open(options_.out);
  ASSERT_TRUE(vectors) << vectors.error().message;
  const auto row = expected_row("third");
  EXPECT_EQ((*vectors)->row(0)[0], row.first);
}

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
  options_.restart = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.text_count, 250U);
  EXPECT_EQ(report->progress.bad_count, 1U);
}

TEST_F(EmbedTest, ARowThatIsNotFiniteIsABadRecordAndResumingAfterItIsExact) {
  // "the" is the last of the 80 tokens.
  write_input("in.txt", many_lines(10'000) + "the\n" + many_lines(300));
  options_.skip_bad = true;
  for (const char* name : {"out.npy", "out.safetensors", "out.jsonl"}) {
    SCOPED_TRACE(name);
    ::setenv("ZERO_WORKER", "echo nan_on=79", 1);
    options_.out = folder_ / name;
    options_.resume = false;
    const auto whole = run();
    ASSERT_TRUE(whole) << whole.error().message;
    EXPECT_EQ(whole->progress.text_count, 10'300U);
    EXPECT_EQ(whole->progress.bad_count, 1U);
    EXPECT_EQ((*VectorFile::open(options_.out))->row_count(), 10'300U);
    const auto undisturbed = output_bytes();
    EXPECT_NE(undisturbed.find(R"("line":10001,"reason":")"), std::string::npos);
    std::filesystem::remove(options_.out);
    last_ = {};
    ASSERT_FALSE(run([this] { return last_.text_count > 2000 && last_.text_count < 10'300; }));
    last_ = {};
    options_.resume = true;
    const auto resumed = run();
    ASSERT_TRUE(resumed) << resumed.error().message;
    EXPECT_GT(resumed->progress.resumed_count, 0U);
    EXPECT_TRUE(output_bytes() == undisturbed);
  }
  options_.resume = false;
  options_.skip_bad = false;
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("in.txt:10001: the vector of this text is not finite"),
            std::string::npos)
      << refused.error().message;
}

// Workers map the weights, so what is written into them meanwhile is computed with.
TEST_F(EmbedTest, AModelThatChangesMeanwhileGivesNoOutput) {
  const auto model = folder_ / "model";
  std::filesystem::copy(options_.model, model, std::filesystem::copy_options::recursive);
  options_.model = model.string();
  write_input("in.txt", many_lines(20'000));
  const auto report = run([&] {
    if (last_.text_count > 0) std::ofstream(model / "config.json", std::ios::app) << "\n";
    return false;
  });
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::Corrupt);
  EXPECT_TRUE(report.error().message.ends_with(
      " have changed while it was used: rows may be of either model, and none is kept; run again"))
      << report.error().message;
  EXPECT_FALSE(std::filesystem::exists(options_.out));
  // Else --resume would publish them once the model is as it was.
  EXPECT_FALSE(std::filesystem::exists(RunFiles(options_.out).journal));
  EXPECT_FALSE(std::filesystem::exists(RunFiles(options_.out).out_part));
}

TEST_F(EmbedTest, UnfinishedWorkIsNotDroppedWithoutAWord) {
  write_input("in.txt", many_lines(20'000));
  ASSERT_FALSE(run([this] { return last_.text_count > 5000; }));
  last_ = {};
  const auto journal = read_file(folder_ / "out.npy.journal");
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(refused.error().message, options_.out.string() +
                                         " is there unfinished: go on with --resume, or drop it "
                                         "and start anew with --restart");
  EXPECT_EQ(*read_file(folder_ / "out.npy.journal"), *journal);
  options_.restart = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.text_count, 20'000U);
  EXPECT_EQ(report->progress.resumed_count, 0U);
}

TEST_F(EmbedTest, ResumingWhatIsFinishedComputesNothing) {
  write_input("in.txt", many_lines(100));
  ASSERT_TRUE(run());
  const auto before = output_bytes();
  options_.resume = true;
  options_.worker_program = "/nothing/here";  // not even started
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->was_complete);
  EXPECT_EQ(report->progress.resumed_count, 100U);
  EXPECT_EQ(report->dim, 8U);
  EXPECT_TRUE(output_bytes() == before);

  write_input("in.txt", many_lines(99));
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_NE(refused.error().message.find("the input has changed since"), std::string::npos);
  write_input("in.txt", many_lines(100));
  options_.length_max = 16;
  EXPECT_NE(run().error().message.find("--max-length was 32 and is now 16"), std::string::npos);
  // Nor by way of a run that was killed before it kept anything.
  ASSERT_TRUE(write_file_atomically(folder_ / "out.npy.journal", ""));
  EXPECT_NE(run().error().message.find("--max-length was 32 and is now 16"), std::string::npos);
}

TEST_F(EmbedTest, AFullDiskLeavesNoFinalNameAndCanBeResumed) {
  write_input("in.txt", many_lines(20'000));
  ASSERT_TRUE(run());
  const auto undisturbed = output_bytes();
  const auto about = *read_file(folder_ / "out.npy.run.json");
  // 640,128 bytes of vectors, and an index that is larger still.
  for (const std::uint64_t size : {100'000U, 640'000U, 1'000'000U}) {
    SCOPED_TRACE(size);
    std::filesystem::remove(options_.out);
    std::filesystem::remove(index_path_of(options_.out));
    options_.resume = false;
    const auto full = [&] {
      const FullDisk disk(size);
      return run();
    }();
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().kind, ErrorKind::ResourceExhausted) << full.error().message;
    EXPECT_TRUE(nothing_is_final());
    options_.resume = true;
    const auto report = run();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_GT(report->progress.resumed_count, 0U) << "what was computed is kept as far as it goes";
    EXPECT_TRUE(output_bytes() == undisturbed);
    EXPECT_EQ(*read_file(folder_ / "out.npy.run.json"), about);
  }
}

TEST_F(EmbedTest, AnOutputThatIsAnInputIsRefusedAndUntouched) {
  write_input("in.jsonl", "{\"text\": \"a\"}\n");
  options_.out = folder_ / "in.jsonl";
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(*read_file(folder_ / "in.jsonl"), "{\"text\": \"a\"}\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "in.jsonl.lock"));
}

TEST_F(EmbedTest, AFolderUnderAnyNameOfTheRunIsRefusedBeforeAnyWork) {
  write_input("in.txt", "a\n");
  options_.worker_program = "/nothing/here";  // not even started
  for (const char* ending : {"", ".part", ".index.jsonl", ".index.jsonl.part", ".run.json",
                             ".run.json.part", ".journal", ".journal.part", ".ahead", ".lock"}) {
    const auto in_the_way = folder_ / (std::string("out.npy") + ending);
    SCOPED_TRACE(in_the_way);
    std::filesystem::create_directories(in_the_way);
    for (const bool restart : {false, true}) {
      options_.restart = restart;
      const auto refused = run();
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
      EXPECT_TRUE(
          refused.error().message.starts_with(in_the_way.string() + ": is there and no file"))
          << refused.error().message;
    }
    std::filesystem::remove(in_the_way);
  }
}

TEST_F(EmbedTest, ALinkUnderANameOfTheRunIsRefusedAndStays) {
  write_input("in.txt", "a\n");
  std::ofstream(folder_ / "there.npy") << "precious";
  for (const char* target : {"nowhere.npy", "there.npy"}) {
    for (const char* ending : {"", ".index.jsonl", ".run.json", ".part", ".journal", ".ahead"}) {
      const auto link = folder_ / (std::string("out.npy") + ending);
      SCOPED_TRACE(link);
      std::filesystem::create_symlink(target, link);
      const auto refused = run();
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
      EXPECT_TRUE(refused.error().message.starts_with(
          link.string() + ": a link to " + target +
          ", and no link is written through or replaced: remove it, or name "))
          << refused.error().message;
      EXPECT_TRUE(std::filesystem::is_symlink(link));
      std::filesystem::remove(link);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "nowhere.npy"));
  EXPECT_EQ(*read_file(folder_ / "there.npy"), "precious");
}

TEST_F(EmbedTest, AFinishedOutputBehindALinkIsComplete) {
  write_input("in.txt", "a\n");
  ASSERT_TRUE(run());
  std::filesystem::rename(options_.out, folder_ / "moved.npy");
  std::filesystem::create_symlink("moved.npy", options_.out);
  options_.resume = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->was_complete);
}

TEST_F(EmbedTest, WhatIsNewOfItsDevicesIsHeeded) {
  write_input("in.txt", many_lines(300));
  int look_count = 0;
  options_.device_news = [&]() -> DeviceNews {
    if (++look_count > 1) return {};
    return {.faults = {{.device = 1, .fault = "the driver reported XID 79 (1 times)"}},
            .notice = "it cannot be watched"};
  };
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.text_count, 300U);
  const auto told = notices_.find("it cannot be watched\n");
  EXPECT_NE(told, std::string::npos) << notices_;
  EXPECT_EQ(told, notices_.rfind("it cannot be watched\n"));
  EXPECT_NE(notices_.find("cpu:1: the driver reported XID 79 (1 times); it is given up\n"),
            std::string::npos)
      << notices_;
}

TEST_F(EmbedTest, TwoFormatsOfOneNameKeepTheirOwnIndexes) {
  write_input("cats.txt", "a\n");
  ASSERT_TRUE(run());
  write_input("tax.txt", "b\n");
  options_.out = folder_ / "out.safetensors";
  ASSERT_TRUE(run());
  const std::vector<std::uint64_t> first{0};
  EXPECT_EQ(read_index_entries(index_path_of(folder_ / "out.npy"), first)->front().text, "a");
  EXPECT_EQ(read_index_entries(index_path_of(options_.out), first)->front().text, "b");
}

TEST_F(EmbedTest, CountsBlankLinesAndWarnsOfAnInputWithoutTexts) {
  write_input("in.txt", "\na\n \n");
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.text_count, 1U);
  EXPECT_EQ(report->progress.blank_count, 2U);
  EXPECT_EQ(
      read_index_entries(index_path_of(options_.out), std::vector<std::uint64_t>{0})->front().line,
      2U);
  EXPECT_EQ(notices_.find("there is no text"), std::string::npos);
  write_input("in.txt", "\n\n");
  options_.out = folder_ / "other.npy";
  ASSERT_TRUE(run());
  EXPECT_NE(notices_.find("there is no text in the input"), std::string::npos) << notices_;
}

TEST_F(EmbedTest, AnInputWithoutTextsReplacesNothing) {
  write_input("in.txt", "a\n");
  ASSERT_TRUE(run());
  const auto before = output_bytes();
  for (const bool restart : {false, true}) {
    options_.restart = restart;
    for (const char* content : {"", "\n \n"}) {
      write_input("in.txt", content);
      const auto refused = run();
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
      EXPECT_EQ(refused.error().message, "there is no text in the input, so " +
                                             options_.out.string() +
                                             " is left as it is: remove it first if it is to have "
                                             "no rows");
      EXPECT_TRUE(output_bytes() == before);
      for (const char* name : {"out.npy.part", "out.npy.journal", "out.npy.lock"}) {
        EXPECT_FALSE(std::filesystem::exists(folder_ / name)) << name;
      }
    }
  }
}

TEST_F(EmbedTest, GoesOnAfterCancellationWithTheSameBytes) {
  write_input("in.txt", many_lines(20'000));
  ASSERT_TRUE(run());
  const auto undisturbed = output_bytes();
  std::filesystem::remove(options_.out);
  std::filesystem::remove(index_path_of(options_.out));

  const auto cancelled =
      run([this] { return last_.text_count > 5000 && last_.text_count < 20'000; });
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().kind, ErrorKind::Cancelled);
  EXPECT_TRUE(nothing_is_final());

  last_ = {};
  options_.resume = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->progress.resumed_count, 5000U);
  EXPECT_EQ(report->progress.resumed_count + report->progress.text_count, 20'000U);
  EXPECT_TRUE(output_bytes() == undisturbed);
}

std::string records(std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += fmt::format("{{\"text\": \"text {}\"}}\n", i);
  return all;
}

// What was done before the bad record is kept, and the next run may skip it.
TEST_F(EmbedTest, ARunThatEndedAtABadRecordGoesOnWithSkipBad) {
  write_input("in.jsonl", records(12'000) + "{\"text\": 3}\n" + records(300));
  ASSERT_FALSE(run());
  options_.resume = true;
  options_.skip_bad = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->progress.resumed_count, 0U);
  EXPECT_EQ(report->progress.text_count + report->progress.resumed_count, 12'300U);
  EXPECT_EQ(report->progress.bad_count, 1U);
}

TEST_F(EmbedTest, RefusesToResumeWithWhatHasChangedByName) {
  const auto content = many_lines(20'000);
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

// A machine that stops while a run begins can leave either.
TEST_F(EmbedTest, ResumingAJournalThatSaysNothingBegins) {
  write_input("in.txt", "a\n");
  options_.resume = true;
  for (const char* content : {"", "{\"muster_run\":2,\"iden"}) {
    SCOPED_TRACE(content);
    std::filesystem::remove(options_.out);
    std::filesystem::remove(index_path_of(options_.out));
    std::filesystem::remove(folder_ / "out.npy.run.json");
    ASSERT_TRUE(write_file_atomically(folder_ / "out.npy.journal", content));
    notices_.clear();
    const auto report = run();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->progress.text_count, 1U);
    EXPECT_NE(notices_.find("starting from the beginning"), std::string::npos) << notices_;
  }
}

// Its texts cannot be read again, so what is whole must not be lost.
TEST_F(EmbedTest, AWholeRunOfStandardInputIsKeptUntilItHasItsNames) {
  write_input("in.txt", many_lines(100));
  ASSERT_TRUE(run());
  const auto undisturbed = output_bytes();
  std::filesystem::remove(options_.out);
  std::filesystem::remove(index_path_of(options_.out));
  const UniqueFd before(::dup(STDIN_FILENO));
  const UniqueFd input(::open((folder_ / "in.txt").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::dup2(input.get(), STDIN_FILENO), STDIN_FILENO);
  options_.input.inputs = {"-"};
  const auto in_the_way = index_path_of(options_.out);
  const auto failed = run([&] {
    std::filesystem::create_directories(in_the_way);  // no file can be renamed to it
    return false;
  });
  ::dup2(before.get(), STDIN_FILENO);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("--resume gives them"), std::string::npos)
      << failed.error().message;
  std::filesystem::remove(in_the_way);
  EXPECT_NE(run().error().message.find("is whole and lacks only its names"), std::string::npos);

  options_.resume = true;
  options_.worker_program = "/nothing/here";  // not even started
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.resumed_count, 100U);
  EXPECT_EQ(*read_file(options_.out), undisturbed.substr(0, 128 + 100 * 8 * sizeof(float)));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.npy.journal"));
  EXPECT_EQ(run().error().message, "standard input cannot be resumed: write it to a file first");
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

TEST_F(EmbedTest, SaysFromTheStartWhatIsDone) {
  write_input("in.txt", many_lines(100));
  ASSERT_TRUE(run());
  EXPECT_EQ(phases_, (std::vector<std::string>{"reading the model", "starting workers",
                                               "measuring precisions", "loading the model", ""}));
  ASSERT_TRUE(first_);
  ASSERT_EQ(first_->devices.size(), 2U);
  EXPECT_EQ(first_->devices[1].name, "cpu:1");
  EXPECT_EQ(first_->devices[1].state, "starting");
  // A device that started late may have had nothing to do before the others were through.
  std::uint64_t done_by_ready = 0;
  for (const auto& device : last_.devices) {
    if (device.state == "ready") done_by_ready += device.token_count;
  }
  EXPECT_EQ(done_by_ready, last_.read_token_count);
}

// What was read and what was done are counted alike: at the end they are equal.
TEST_F(EmbedTest, CountsTheTokensThatItHasRead) {
  write_input("in.txt", many_lines(100));
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(last_.read_token_count, report->progress.token_count);
  EXPECT_EQ(last_.devices[0].token_count + last_.devices[1].token_count, last_.read_token_count);
  EXPECT_EQ(last_.input_size_resumed, 0U);
}

}  // namespace
}  // namespace muster
