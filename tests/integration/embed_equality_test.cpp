// The real programs with the real engine on a tiny model: the same bytes whatever devices, batches
// and order, and whoever is killed meanwhile. On CPUs, and by the code for GPUs on its stand-in.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "dataset/vector_file.h"
#include "integration/embedding_runs.h"

namespace muster {
namespace {

struct Subject {
  std::string precision;
  std::string kind;
  int many_texts;  // that a run takes a while for
};

class EmbedEqualityTest : public testing::TestWithParam<Subject> {
 protected:
  static std::string devices(int count) { return std::to_string(count) + "x" + GetParam().kind; }

  Program start(const std::string& input, const std::string& out,
                std::vector<std::string> more) const {
    more.insert(more.end(), {"--quiet", "--precision", GetParam().precision});
    return runs_.start(input, out, more);
  }
  std::string rows_of(const std::string& out) const { return runs_.rows_of(out); }
  std::string log() const { return runs_.log(); }

  const EmbeddingRuns runs_{"embed_equality"};
};

TEST_P(EmbedEqualityTest, DevicesAndBatchesDoNotShowInTheBits) {
  runs_.write_input("in.txt", EmbeddingRuns::texts(3000));
  ASSERT_EQ(start("in.txt", "a.npy", {"--devices", devices(1), "--cores-per-device", "1"}).wait(),
            0)
      << log();
  const auto expected = rows_of("a.npy");
  ASSERT_EQ(start("in.txt", "b.npy", {"--devices", devices(1), "--batch-tokens", "64"}).wait(), 0)
      << log();
  EXPECT_TRUE(rows_of("b.npy") == expected) << "batches of 64 tokens, every lane";
  ASSERT_EQ(start("in.txt", "c.npy", {"--devices", devices(2), "--batch-tokens", "16384"}).wait(),
            0)
      << log();
  EXPECT_TRUE(rows_of("c.npy") == expected) << "two devices";
}

TEST_P(EmbedEqualityTest, OrderDoesNotShowInTheBits) {
  const auto lines = EmbeddingRuns::texts(3000);
  std::vector<std::size_t> order(lines.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  std::vector<std::string> shuffled;
  for (const auto i : order) shuffled.push_back(lines[i]);
  runs_.write_input("in.txt", lines);
  runs_.write_input("shuffled.txt", shuffled);
  ASSERT_EQ(start("in.txt", "a.npy", {"--devices", devices(2)}).wait(), 0) << log();
  ASSERT_EQ(start("shuffled.txt", "b.npy", {"--devices", devices(2)}).wait(), 0) << log();
  const auto straight = VectorFile::open(runs_.folder() / "a.npy");
  const auto mixed = VectorFile::open(runs_.folder() / "b.npy");
  ASSERT_TRUE(straight && mixed);
  for (std::size_t row = 0; row < order.size(); ++row) {
    const auto here = (*mixed)->row(row);
    ASSERT_TRUE(std::equal(here.begin(), here.end(), (*straight)->row(order[row]).begin()))
        << "row " << row;
  }
}

TEST_P(EmbedEqualityTest, KilledAndStoppedWorkersDoNotShowInTheBits) {
  runs_.write_input("in.txt", EmbeddingRuns::texts(GetParam().many_texts));
  ASSERT_EQ(start("in.txt", "a.npy", {"--devices", devices(2)}).wait(), 0) << log();

  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto program = start("in.txt", "b.npy", {"--devices", devices(2)});
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

INSTANTIATE_TEST_SUITE_P(
    Subjects, EmbedEqualityTest,
    testing::Values(Subject{"fp32", "cpu", 150'000}, Subject{"auto", "cpu", 150'000},
                    Subject{"fp32", "standin", 30'000}, Subject{"bf16", "standin", 30'000}),
    [](const auto& subject) { return subject.param.precision + "_" + subject.param.kind; });

}  // namespace
}  // namespace muster
