#include "server/stats_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

namespace muster {
namespace {

namespace fs = std::filesystem;

class StatsFile : public testing::Test {
 protected:
  StatsFile() {
    const auto* name = testing::UnitTest::GetInstance()->current_test_info()->name();
    file_ = fs::path(testing::TempDir()) /
            ("muster_stats_" + std::to_string(getpid()) + "_" + name + ".jsonl");
  }
  ~StatsFile() override { fs::remove(file_); }

  std::string text() const {
    std::ifstream file(file_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Runs the loop until `count` lines have been asked for.
  std::uint64_t run_until(int count, std::string* notices) {
    SteadyClock clock;
    EventLoop loop;
    int asked = 0;
    auto writer = StatsWriter::start(
        {.file = file_,
         .interval = std::chrono::milliseconds(10),
         .line =
             [&] {
               if (++asked == count) loop.post([&loop] { loop.stop(); });
               return "{\"line\":" + std::to_string(asked) + "}";
             },
         .on_notice = [notices](const std::string& text) { *notices += text + "\n"; }},
        loop, clock);
    EXPECT_TRUE(writer) << writer.error().message;
    if (!writer) return 0;
    loop.run();
    return (*writer)->lost_count();
  }

  fs::path file_;
};

TEST_F(StatsFile, GetsALineEachInterval) {
  std::string notices;
  EXPECT_EQ(run_until(3, &notices), 0U);
  EXPECT_EQ(text(), "{\"line\":1}\n{\"line\":2}\n{\"line\":3}\n");
  EXPECT_EQ(notices, "");
}

TEST_F(StatsFile, GetsItsFolder) {
  const auto folder = file_.parent_path() / (file_.stem().string() + "_made");
  const auto file = std::exchange(file_, folder / "logs" / "stats.jsonl");
  std::string notices;
  EXPECT_EQ(run_until(1, &notices), 0U);
  EXPECT_EQ(text(), "{\"line\":1}\n");
  fs::remove_all(folder);
  file_ = file;
}

TEST_F(StatsFile, IsNoOtherJsonOfSomebodysOwn) {
  const std::string own = "{\"text\":\"years of work\"}\n";
  std::ofstream(file_) << own;
  SteadyClock clock;
  EventLoop loop;
  const auto writer = StatsWriter::start({.file = file_,
                                          .interval = std::chrono::milliseconds(10),
                                          .line = [] { return "{\"timestamp\":1}"; },
                                          .keys = {"timestamp"},
                                          .on_notice = {}},
                                         loop, clock);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(text(), own);
}

TEST_F(StatsFile, LosesATornLastLineAndNoOther) {
  std::ofstream(file_) << "{\"line\":7}\n{\"li";
  std::string notices;
  run_until(1, &notices);
  EXPECT_EQ(text(), "{\"line\":7}\n{\"line\":1}\n");
}

TEST_F(StatsFile, CountsWhatAFullDiskLosesAndTellsItOnce) {
  fs::create_symlink("/dev/full", file_);
  std::string notices;
  EXPECT_EQ(run_until(3, &notices), 3U);
  EXPECT_EQ(notices, "lines of the statistics file are lost: " + file_.string() +
                         ": cannot write: No space left on device\n");
}

}  // namespace
}  // namespace muster
