#include "service/run_output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "base/file.h"

namespace muster {
namespace {

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
    auto output = RunOutput::open(files_, VectorFormat::Npy, 2, identity_, std::move(resumption));
    EXPECT_TRUE(output) << output.error().message;
    return *std::move(output);
  }

  static void append(RunOutput& output, float value) {
    IndexEntry entry{};
    entry.input = "in.txt";
    entry.text = "text " + std::to_string(value);
    ASSERT_TRUE(output.append(entry, std::array{value, -value}));
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
  ASSERT_TRUE(output->finish("{}\n"));
  expect_rows({1});
  EXPECT_EQ(*read_file(files_.about), "{}\n");
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
  auto resumption = find_resumption(files_, VectorFormat::Npy, identity_);
  ASSERT_TRUE(resumption) << resumption.error().message;
  EXPECT_EQ(resumption->last.record_count, 2U);
  EXPECT_EQ(resumption->last.records_hash, "two");
  auto output = open(*std::move(resumption));
  append(*output, 4);
  ASSERT_TRUE(output->commit("three"));
  ASSERT_TRUE(output->finish("{}\n"));
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
  auto resumption = find_resumption(files_, VectorFormat::Npy, identity_);
  ASSERT_TRUE(resumption) << resumption.error().message;
  EXPECT_EQ(resumption->last.record_count, 1U);
  auto output = open(*std::move(resumption));
  append(*output, 7);
  ASSERT_TRUE(output->commit("again"));
  ASSERT_TRUE(output->finish("{}\n"));
  expect_rows({1, 7});
}

TEST_F(RunOutputTest, GoesOnWhenTheEndCameBetweenTheRenames) {
  {
    auto output = open();
    append(*output, 1);
    ASSERT_TRUE(output->commit("one"));
  }
  std::filesystem::rename(files_.index_part, files_.index);
  auto resumption = find_resumption(files_, VectorFormat::Npy, identity_);
  ASSERT_TRUE(resumption) << resumption.error().message;
  EXPECT_EQ(resumption->last.record_count, 1U);
  auto output = open(*std::move(resumption));
  ASSERT_TRUE(output->finish("{}\n"));
  expect_rows({1});
}

TEST_F(RunOutputTest, GoesOnWhenTheEndCameBeforeTheJournalWasRemoved) {
  {
    auto output = open();
    append(*output, 1);
    ASSERT_TRUE(output->commit("one"));
  }
  std::filesystem::rename(files_.index_part, files_.index);
  std::filesystem::rename(files_.out_part, files_.out);
  auto resumption = find_resumption(files_, VectorFormat::Npy, identity_);
  ASSERT_TRUE(resumption) << resumption.error().message;
  EXPECT_EQ(resumption->last.record_count, 1U);
  auto output = open(*std::move(resumption));
  ASSERT_TRUE(output->finish("{}\n"));
  expect_rows({1});
}

TEST_F(RunOutputTest, LeavesAnOlderRunAloneWhenNothingWasDone) {
  {
    auto output = open();
    append(*output, 1);
    ASSERT_TRUE(output->commit("one"));
    ASSERT_TRUE(output->finish("{}\n"));
  }
  const auto before = *read_file(files_.index);
  ASSERT_TRUE(RunJournal::create(files_.journal, identity_));  // the next run, killed at its start
  const auto resumption = find_resumption(files_, VectorFormat::Npy, identity_);
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
  const auto other =
      find_resumption(files_, VectorFormat::Npy, {{"the model", "abc"}, {"--max-length", "128"}});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::InvalidArgument);
  EXPECT_NE(other.error().message.find("--max-length was 256 and is now 128"), std::string::npos)
      << other.error().message;
}

TEST_F(RunOutputTest, ABadRecordHasALineAndNoRow) {
  auto output = open();
  append(*output, 1);
  IndexEntry bad{};
  bad.input = "in.txt";
  bad.line = 2;
  bad.reason = "in.txt:2: not JSON";
  ASSERT_TRUE(output->append(bad, {}));
  append(*output, 3);
  EXPECT_EQ(output->record_count(), 3U);
  EXPECT_EQ(output->row_count(), 2U);
  ASSERT_TRUE(output->commit("x"));
  ASSERT_TRUE(output->finish("{}\n"));
  expect_rows({1, 3});
  const auto index = read_file(files_.index);
  EXPECT_NE(index->find(R"({"row":null,"input":"in.txt","line":2,"reason":"in.txt:2: not JSON"})"),
            std::string::npos)
      << *index;
}

}  // namespace
}  // namespace muster
