#include "jobs/run_output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>

#include "base/file.h"

namespace muster {
namespace {

constexpr RowShape kShape{.format = VectorFormat::Npy, .dim = 2};

class RunOutputTest : public testing::Test {
 protected:
  RunOutputTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("run_output." + std::to_string(::getpid()))),
        files_(folder_ / "x.npy") {
    std::filesystem::create_directories(folder_);
  }
  ~RunOutputTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<RunOutput> open(std::optional<RunResumption> resumption = std::nullopt) {
    auto output =
        RunOutput::open(files_, vector_parts(files_, kShape), identity_, std::move(resumption));
    EXPECT_TRUE(output) << output.error().message;
    return *std::move(output);
  }

  static void append(RunOutput& output, float value) {
    WindowRecord appended;
    appended.entry.input = "in.txt";
    appended.entry.text = "text " + std::to_string(value);
    appended.result.row = {value, -value};
    ASSERT_TRUE(output.append(appended));
  }

  static OutputRecord record() {
    OutputRecord record;
    record.model = "/models/m";
    record.records_hash = "all";
    record.dim = 2;
    return record;
  }

  /// An output whose parts are whole and have one of their final names, or two.
  void end_within_publish(int rename_count) {
    {
      auto output = open();
      append(*output, 1);
      ASSERT_TRUE(output->finish(record()));
    }
    std::filesystem::rename(files_.out, files_.out_part);
    if (rename_count < 2) std::filesystem::rename(files_.about, files_.about_part);
    if (rename_count < 1) std::filesystem::rename(files_.index, files_.index_part);
    ASSERT_TRUE(RunJournal::create(files_.journal, identity_));
    ASSERT_TRUE(RunJournal::reopen(files_.journal, identity_)->journal->append_finished());
  }

  void expect_rows(std::initializer_list<float> values) {
    const auto vectors = VectorFile::open(files_.out);
    ASSERT_TRUE(vectors) << vectors.error().message;
    ASSERT_EQ((*vectors)->row_count(), values.size());
    std::uint64_t row = 0;
    for (const float value : values) {
      EXPECT_EQ((*vectors)->row(row)[0], value);
      EXPECT_EQ((*vectors)->row(row++)[1], -value);
    }
  }

  const std::filesystem::path folder_;
  const RunFiles files_;
  const RunIdentity identity_{{"the model", "abc"}, {"--max-length", "256"}};
};

TEST_F(RunOutputTest, GivesTheFinalNamesOnlyAtTheEnd) {
  auto output = open();
  append(*output, 1);
  ASSERT_TRUE(output->commit("hash"));
  EXPECT_FALSE(std::filesystem::exists(files_.out));
  EXPECT_FALSE(std::filesystem::exists(files_.index));
  ASSERT_TRUE(output->finish(record()));
  expect_rows({1});
  const auto about = read_output_record(files_.about);
  ASSERT_TRUE(about) << about.error().message;
  EXPECT_EQ(about->row_count, 1U);
  EXPECT_EQ(about->records_hash, "all");
  EXPECT_TRUE(check_output(*about, files_.out));
  std::size_t file_count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_))
    ++file_count;
  EXPECT_EQ(file_count, 3U);  // vectors, index, about: no part, no journal
}

TEST_F(RunOutputTest, GoesOnAfterTheLastCommit) {
  {
    auto output = open();
    append(*output, 1);
    append(*output, 2);
    ASSERT_TRUE(output->commit("two"));
    append(*output, 3);  // never committed: lost with the process
  }
  auto resumption = find_resumption(files_, vector_header_size(VectorFormat::Npy), identity_);
  ASSERT_TRUE(resumption) << resumption.error().message;
  EXPECT_EQ(resumption->last.record_count, 2U);
  EXPECT_EQ(resumption->last.records_hash, "two");
  auto output = open(*std::move(resumption));
  append(*output, 4);
  ASSERT_TRUE(output->commit("three"));
  ASSERT_TRUE(output->finish(record()));
  expect_rows({1, 2, 4});
}

TEST_F(RunOutputTest, GoesBackToTheLastStepWhoseBytesAreSound) {
  {
    auto output = open();
    append(*output, 1);
    ASSERT_TRUE(output->commit("one"));
    append(*output, 2);
    ASSERT_TRUE(output->commit("two"));
  }
  auto content = *read_file(files_.out_part);
  content.back() = static_cast<char>(content.back() ^ 1);  // the second row is damaged
  ASSERT_TRUE(write_file_atomically(files_.out_part, content));
  auto resumption = find_resumption(files_, vector_header_size(VectorFormat::Npy), identity_);
  ASSERT_TRUE(resumption) << resumption.error().message;
  EXPECT_EQ(resumption->last.record_count, 1U);
  auto output = open(*std::move(resumption));
  append(*output, 7);
  ASSERT_TRUE(output->commit("again"));
  ASSERT_TRUE(output->finish(record()));
  expect_rows({1, 7});
}

TEST_F(RunOutputTest, GivesTheNamesThatAreMissingWhereverTheEndCame) {
  for (int rename_count = 0; rename_count < 3; ++rename_count) {
    SCOPED_TRACE(rename_count);
    end_within_publish(rename_count);
    ASSERT_TRUE(publish(files_));
    expect_rows({1});
    EXPECT_TRUE(check_output(*read_output_record(files_.about), files_.out));
    EXPECT_FALSE(std::filesystem::exists(files_.journal));
    EXPECT_TRUE(publish(files_)) << "and again";
  }
}

TEST_F(RunOutputTest, RefusesToGoOnWithoutAPartAndLeavesAnOlderOutputAlone) {
  {
    auto output = open();
    append(*output, 1);
    ASSERT_TRUE(output->finish(record()));
  }
  {
    auto output = open();
    append(*output, 2);
    ASSERT_TRUE(output->commit("one"));
  }
  std::filesystem::remove(files_.out_part);
  const auto resumption = find_resumption(files_, vector_header_size(VectorFormat::Npy), identity_);
  ASSERT_FALSE(resumption);
  EXPECT_EQ(resumption.error().kind, ErrorKind::Corrupt);
  expect_rows({1});
}

TEST_F(RunOutputTest, NothingIsWrittenThroughALink) {
  ASSERT_TRUE(write_file_atomically(folder_ / "precious", "mine"));
  const auto expect_refused = [&](const Status& outcome, const std::filesystem::path& link) {
    ASSERT_FALSE(outcome) << link;
    EXPECT_EQ(outcome.error().kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(outcome.error().message.find(link.string() + ": a link"), 0U)
        << outcome.error().message;
    EXPECT_EQ(*read_file(folder_ / "precious"), "mine");
    std::filesystem::remove(link);
  };
  for (const auto& part : {files_.journal_part, files_.out_part, files_.index_part}) {
    std::filesystem::create_symlink("precious", part);
    const auto output =
        RunOutput::open(files_, vector_parts(files_, kShape), identity_, std::nullopt);
    expect_refused(output ? Status(Done{}) : Status(output.error()), part);
  }
  auto output = open();
  append(*output, 1);
  std::filesystem::create_symlink("precious", files_.about_part);
  expect_refused(output->finish(record()), files_.about_part);
}

TEST_F(RunOutputTest, RowsAheadAreOfOneRunAndGoWithIt) {
  const auto put_ahead = [&] { ASSERT_TRUE(write_file_atomically(files_.ahead, "MSTAHEAD")); };
  put_ahead();
  auto output = open();
  EXPECT_FALSE(std::filesystem::exists(files_.ahead)) << "of an earlier run";
  append(*output, 1);
  ASSERT_TRUE(output->commit("one"));
  put_ahead();
  output = open(*find_resumption(files_, vector_header_size(VectorFormat::Npy), identity_));
  EXPECT_TRUE(std::filesystem::exists(files_.ahead)) << "of the run that goes on";
  ASSERT_TRUE(output->finish(record()));
  EXPECT_FALSE(std::filesystem::exists(files_.ahead));
  put_ahead();
  discard(files_);
  EXPECT_FALSE(std::filesystem::exists(files_.ahead));
}

// Counted before it was written, a row that is refused would be journalled and never be there.
TEST_F(RunOutputTest, WhatCouldNotBeAppendedIsNotCounted) {
  auto output = open();
  append(*output, 1);
  ASSERT_TRUE(output->commit("one"));
  WindowRecord refused;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  refused.result.row = {nan, nan};
  EXPECT_FALSE(output->append(refused));
  EXPECT_EQ(output->record_count(), 1U);
  EXPECT_FALSE(refused.entry.row);
  EXPECT_FALSE(output->commit("two")) << "a failed output stays failed";
  output.reset();
  auto resumption = find_resumption(files_, vector_header_size(VectorFormat::Npy), identity_);
  ASSERT_TRUE(resumption) << resumption.error().message;
  EXPECT_EQ(resumption->last.record_count, 1U);
  output = open(*std::move(resumption));
  append(*output, 2);
  ASSERT_TRUE(output->finish(record()));
  expect_rows({1, 2});
}

TEST_F(RunOutputTest, AStepIsMadeDurableWhileMoreIsAppended) {
  auto output = open();
  append(*output, 1);
  ASSERT_TRUE(output->begin_commit("one"));
  append(*output, 2);
  ASSERT_TRUE(output->begin_commit("two"));  // nothing, if the first is under way
  append(*output, 3);
  ASSERT_TRUE(output->commit("three"));
  EXPECT_EQ(output->durable_record_count(), 3U);
  append(*output, 4);  // never committed
  output.reset();
  auto resumption = find_resumption(files_, vector_header_size(VectorFormat::Npy), identity_);
  ASSERT_TRUE(resumption) << resumption.error().message;
  EXPECT_EQ(resumption->last.record_count, 3U);
  EXPECT_EQ(resumption->last.records_hash, "three");
  output = open(*std::move(resumption));
  append(*output, 4);
  ASSERT_TRUE(output->finish(record()));
  expect_rows({1, 2, 3, 4});
}

TEST_F(RunOutputTest, AStepThatHasBegunCountsThoughAppendingFailsBehindIt) {
  auto output = open();
  append(*output, 1);
  ASSERT_TRUE(output->begin_commit("one"));
  WindowRecord refused;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  refused.result.row = {nan, nan};
  EXPECT_FALSE(output->append(refused));
  EXPECT_FALSE(output->commit("two"));
  EXPECT_EQ(output->durable_record_count(), 1U);
  output.reset();
  const auto resumption = find_resumption(files_, vector_header_size(VectorFormat::Npy), identity_);
  ASSERT_TRUE(resumption) << resumption.error().message;
  EXPECT_EQ(resumption->last.record_count, 1U);
}

TEST_F(RunOutputTest, LeavesAnOlderRunAloneWhenNothingWasDone) {
  {
    auto output = open();
    append(*output, 1);
    ASSERT_TRUE(output->commit("one"));
    ASSERT_TRUE(output->finish(record()));
  }
  const auto before = *read_file(files_.index);
  ASSERT_TRUE(RunJournal::create(files_.journal, identity_));  // the next run, killed at its start
  const auto resumption = find_resumption(files_, vector_header_size(VectorFormat::Npy), identity_);
  ASSERT_TRUE(resumption) << resumption.error().message;
  EXPECT_EQ(resumption->last.record_count, 0U);
  EXPECT_EQ(*read_file(files_.index), before);
  expect_rows({1});
}

TEST_F(RunOutputTest, RefusesAnotherOptionByName) {
  {
    auto output = open();
    ASSERT_TRUE(output->commit("none"));
  }
  const auto other = find_resumption(files_, vector_header_size(VectorFormat::Npy),
                                     {{"the model", "abc"}, {"--max-length", "128"}});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::InvalidArgument);
  EXPECT_NE(other.error().message.find("--max-length was 256 and is now 128"), std::string::npos)
      << other.error().message;
}

TEST_F(RunOutputTest, ABadRecordHasALineAndNoRow) {
  auto output = open();
  append(*output, 1);
  WindowRecord bad;
  bad.entry.input = "in.txt";
  bad.entry.line = 2;
  bad.entry.reason = "in.txt:2: not JSON";
  ASSERT_TRUE(output->append(bad));
  append(*output, 3);
  EXPECT_EQ(output->record_count(), 3U);
  EXPECT_EQ(output->row_count(), 2U);
  ASSERT_TRUE(output->commit("x"));
  ASSERT_TRUE(output->finish(record()));
  expect_rows({1, 3});
  const auto index = read_file(files_.index);
  EXPECT_NE(index->find(R"({"row":null,"input":"in.txt","line":2,"reason":"in.txt:2: not JSON"})"),
            std::string::npos)
      << *index;
}

}  // namespace
}  // namespace muster
