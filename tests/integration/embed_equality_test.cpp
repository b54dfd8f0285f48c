// The real programs with the real engine on a tiny model: the same bytes whatever devices, batches
// and order, and whoever is killed meanwhile.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "dataset/vector_file.h"
#include "integration/program.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

class EmbedEqualityTest : public testing::TestWithParam<const char*> {
 protected:
  EmbedEqualityTest()
      : folder_(fs::path(testing::TempDir()) / ("embed_equality." + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~EmbedEqualityTest() override { fs::remove_all(folder_); }

  static std::vector<std::string> texts(int count) {
    std::vector<std::string> result;
    for (int i = 0; i < count; ++i) {
      std::string text = "text " + std::to_string(i * 7919LL % 100'003);
      for (int j = 0; j < i % 17; ++j) text += " the";
      result.push_back(std::move(text));
    }
    return result;
  }

  void write_input(const std::string& name, const std::vector<std::string>& lines) const {
    std::ofstream file(folder_ / name);
    for (const auto& line : lines) file << line << "\n";
  }

  Program start(const std::string& input, const std::string& out,
                std::vector<std::string> more) const {
    std::vector<std::string> words{std::string(MUSTER_BINARY_DIR) + "/bin/muster",
                                   "embed",
                                   std::string(MUSTER_SOURCE_DIR) + "/tests/models/tiny",
                                   (folder_ / input).string(),
                                   "-o",
                                   (folder_ / out).string(),
                                   "--precision",
                                   GetParam(),
                                   "--quiet",
                                   "--cache-dir",
                                   (folder_ / "cache").string()};
    words.insert(words.end(), more.begin(), more.end());
    return Program(std::move(words), (folder_ / "log").string());
  }

  std::string rows_of(const std::string& out) const { return *read_file(folder_ / out); }
  std::string log() const { return *read_file(folder_ / "log"); }

  const fs::path folder_;
};

TEST_P(EmbedEqualityTest, DevicesAndBatchesDoNotShowInTheBits) {
  write_input("in.txt", texts(3000));
  ASSERT_EQ(start("in.txt", "a.npy", {"--devices", "1xcpu", "--cores-per-device", "1"}).wait(), 0)
      << log();
  const auto expected = rows_of("a.npy");
  ASSERT_EQ(start("in.txt", "b.npy", {"--devices", "1xcpu", "--batch-tokens", "64"}).wait(), 0)
      << log();
  EXPECT_TRUE(rows_of("b.npy") == expected) << "batches of 64 tokens, a lane per core";
  ASSERT_EQ(start("in.txt", "c.npy", {"--devices", "2xcpu", "--batch-tokens", "16384"}).wait(), 0)
      << log();
  EXPECT_TRUE(rows_of("c.npy") == expected) << "two devices";
}

TEST_P(EmbedEqualityTest, OrderDoesNotShowInTheBits) {
  const auto lines = texts(3000);
  std::vector<std::size_t> order(lines.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  std::vector<std::string> shuffled;
  for (const auto i : order) shuffled.push_back(lines[i]);
  write_input("in.txt", lines);
  write_input("shuffled.txt", shuffled);
  ASSERT_EQ(start("in.txt", "a.npy", {"--devices", "2xcpu"}).wait(), 0) << log();
  ASSERT_EQ(start("shuffled.txt", "b.npy", {"--devices", "2xcpu"}).wait(), 0) << log();
  const auto straight = VectorFile::open(folder_ / "a.npy");
  const auto mixed = VectorFile::open(folder_ / "b.npy");
  ASSERT_TRUE(straight && mixed);
  for (std::size_t row = 0; row < order.size(); ++row) {
    const auto here = (*mixed)->row(row);
    ASSERT_TRUE(std::equal(here.begin(), here.end(), (*straight)->row(order[row]).begin()))
        << "row " << row;
  }
}

TEST_P(EmbedEqualityTest, KilledAndStoppedWorkersDoNotShowInTheBits) {
  write_input("in.txt", texts(150'000));
  ASSERT_EQ(start("in.txt", "a.npy", {"--devices", "2xcpu"}).wait(), 0) << log();

  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto program = start("in.txt", "b.npy", {"--devices", "2xcpu"});
  int kill_count = 0;
  while (!ends_within(program.pidfd(), static_cast<int>(100 + random() % 300))) {
    const auto workers = program.children();
    if (workers.empty() || kill_count == 6) continue;
    if (kill_count == 2) {
      for (const auto worker : workers) ::kill(worker, SIGKILL);
    } else {
      ::kill(workers[random() % workers.size()], kill_count == 4 ? SIGSTOP : SIGKILL);
    }
    ++kill_count;
  }
  ASSERT_EQ(program.wait(), 0) << log();
  EXPECT_GT(kill_count, 0);
  EXPECT_TRUE(rows_of("b.npy") == rows_of("a.npy"));
}

INSTANTIATE_TEST_SUITE_P(Precisions, EmbedEqualityTest, testing::Values("fp32", "auto"));

}  // namespace
}  // namespace muster
