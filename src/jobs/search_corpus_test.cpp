#include "jobs/search_corpus.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/file.h"
#include "jobs/run_output.h"

namespace muster {
namespace {

class SearchCorpusTest : public testing::Test {
 protected:
  SearchCorpusTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("search_corpus." + std::to_string(::getpid()))),
        out_(folder_ / "x.npy") {
    std::filesystem::create_directories(folder_);
  }
  ~SearchCorpusTest() override { std::filesystem::remove_all(folder_); }

  /// Rows (1, 0), (0, 1) with the fields, as `muster embed --keep lang --keep year` writes them.
  void write_output(VectorFormat format = VectorFormat::Npy) const {
    const RunFiles files(format == VectorFormat::Npy ? out_ : folder_ / "x.jsonl");
    const RowShape shape{.format = format, .dim = 2};
    auto output = *RunOutput::open(files, vector_parts(files, shape), {}, std::nullopt);
    WindowRecord first;
    first.entry.input = "in.jsonl";
    first.entry.text = "one";
    first.entry.fields = R"({"lang":"de"})";
    first.result.row = {1.0F, 0.0F};
    ASSERT_TRUE(output->append(first));
    WindowRecord second;
    second.entry.input = "in.jsonl";
    second.entry.text = "two";
    second.result.row = {0.0F, 1.0F};
    ASSERT_TRUE(output->append(second));
    OutputRecord record;
    record.model = "/models/tiny";
    record.dim = 2;
    record.kept = {"lang", "year"};
    ASSERT_TRUE(output->finish(record));
  }

  const std::filesystem::path folder_;
  const std::filesystem::path out_;
};

TEST_F(SearchCorpusTest, HasVectorsTextsAndTheFieldsThatWereKept) {
  write_output();
  const auto corpus = SearchCorpus::open(out_, false);
  ASSERT_TRUE(corpus) << corpus.error().message;
  EXPECT_EQ((*corpus)->vectors().row_count(), 2U);
  EXPECT_EQ((*corpus)->record()->model, "/models/tiny");
  EXPECT_EQ((*corpus)->index().entry(1)->text, "two");
  EXPECT_EQ((*corpus)->field_names(), (std::vector<std::string>{"lang", "year"}));
  const auto filter = (*corpus)->filter("lang=de and not year");
  ASSERT_TRUE(filter) << filter.error().message;
  EXPECT_TRUE((*filter)->takes(0));
  EXPECT_FALSE((*filter)->takes(1));
  EXPECT_EQ((*corpus)->filter("text~a").error().message,
            "filter, column 1: no field \"text\"; there is \"lang\", \"year\"");
}

TEST_F(SearchCorpusTest, AFileThatWasWrittenIntoIsNotRead) {
  write_output();
  const auto corpus = *SearchCorpus::open(out_, false);
  EXPECT_TRUE(corpus->check_unchanged());
  // Another output under the name leaves the old one as it was.
  std::filesystem::rename(out_, folder_ / "old.npy");
  std::ofstream(out_) << "another";
  EXPECT_TRUE(corpus->check_unchanged());
  std::filesystem::resize_file(folder_ / "old.npy", 100);
  const auto refused = corpus->check_unchanged();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Corrupt);
  EXPECT_TRUE(refused.error().message.ends_with("x.npy was written into since it was opened"));
}

// The vectors come out of a pipe, which ends only when another output has taken the name. Without a
// look at the names the rows of the one would be searched with the texts of the other.
TEST_F(SearchCorpusTest, WhatIsReplacedMeanwhileIsNotMixed) {
  write_output(VectorFormat::Jsonl);
  const auto out = folder_ / "x.jsonl";
  EXPECT_TRUE(SearchCorpus::open(out, false));
  std::filesystem::rename(out, folder_ / "new.jsonl");
  ASSERT_EQ(::mkfifo(out.c_str(), 0600), 0);
  std::thread writer([&] {
    std::ofstream pipe(out);
    pipe << "[0,1]\n[1,0]\n" << std::flush;
    std::filesystem::rename(folder_ / "new.jsonl", out);
  });
  const auto corpus = SearchCorpus::open(out, false);
  writer.join();
  ASSERT_FALSE(corpus);
  EXPECT_EQ(corpus.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(corpus.error().message, out.string() + " was replaced while it was read: try again");
}

TEST_F(SearchCorpusTest, WithoutARecordTheFieldsOfTheIndexCount) {
  write_output();
  std::filesystem::remove(record_path_of(out_));
  const auto refused = SearchCorpus::open(out_, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::NotFound);
  const auto corpus = SearchCorpus::open(out_, true);
  ASSERT_TRUE(corpus) << corpus.error().message;
  EXPECT_FALSE((*corpus)->record());
  EXPECT_EQ((*corpus)->field_names(), (std::vector<std::string>{"lang"}));
}

TEST_F(SearchCorpusTest, AnIndexOfOtherVectorsIsRefused) {
  write_output();
  const auto index = index_path_of(out_);
  auto text = *read_file(index);
  text.replace(text.find("two"), 3, "owt");
  std::ofstream(index) << text;
  const auto refused = SearchCorpus::open(out_, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Corrupt);
}

}  // namespace
}  // namespace muster
