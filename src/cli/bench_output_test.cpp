#include "cli/bench_output.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace muster {
namespace {

class CheckBenchOutput : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      ::testing::TempDir() + "bench_output." + std::to_string(::getpid());
};

TEST_F(CheckBenchOutput, TakesANewFileInAFolderThatIsThere) {
  EXPECT_TRUE(check_bench_output(folder_ / "new.json"));
  EXPECT_TRUE(check_bench_output("new.json"));
  std::filesystem::create_symlink(folder_, folder_ / "link");
  EXPECT_TRUE(check_bench_output(folder_ / "link" / "new.json"));
}

TEST_F(CheckBenchOutput, TakesWhatIsNoFile) {
  EXPECT_TRUE(check_bench_output("/dev/null"));
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(check_bench_output(pipe));
}

// Each of these would be found out behind the measurement else.
TEST_F(CheckBenchOutput, RefusesWhatCannotBeWritten) {
  const auto missing = folder_ / "missing";
  const auto absent = check_bench_output(missing / "new.json");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().kind, ErrorKind::NotFound);
  EXPECT_EQ(absent.error().message,
            "-o " + (missing / "new.json").string() + ": there is no folder " + missing.string());
  const auto folder = check_bench_output(folder_);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().message,
            "-o " + folder_.string() + ": that is a folder: name a file in it");
  std::ofstream(folder_ / "plain") << "";
  EXPECT_FALSE(check_bench_output(folder_ / "plain" / "new.json"));
  std::filesystem::create_symlink(missing, folder_ / "dangling");
  EXPECT_FALSE(check_bench_output(folder_ / "dangling"));
}

TEST_F(CheckBenchOutput, RefusesWhatIsNoNameOfAFile) {
  EXPECT_EQ(check_bench_output("").error().message, "-o wants the name of a file");
  EXPECT_EQ(check_bench_output("-").error().message,
            "-o -: a result goes into a file: name one; --json has it on standard output");
  EXPECT_EQ(check_report_output("-").error().message, "-o -: a report goes into a file: name one");
}

// What a killed run leaves has a name of its own each time, so nothing would ever take its place.
TEST_F(CheckBenchOutput, ARunRemovesWhatAKilledOneHasLeftOfItsFileAlone) {
  const auto out = folder_ / "k.json";
  const std::string digits = ".0123456789abcdef.tmp";
  const auto left = folder_ / ("k.json" + digits);
  const auto others = folder_ / ("j.json" + digits);
  std::ofstream(left) << "half";
  std::ofstream(others) << "half";
  {
    const auto lock = hold_bench_output(out);
    ASSERT_TRUE(lock) << lock.error().message;
    EXPECT_TRUE(lock->has_value());
    EXPECT_FALSE(std::filesystem::exists(left));
    EXPECT_TRUE(std::filesystem::exists(others));
    std::ofstream(left) << "half";  // as the one that has the lock writes it
    const auto second = hold_bench_output(out);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, ErrorKind::Unavailable);
    EXPECT_TRUE(std::filesystem::exists(left));
  }
  EXPECT_TRUE(hold_bench_output(out));
  EXPECT_FALSE(std::filesystem::exists(left));
  const auto device = hold_bench_output("/dev/null");
  ASSERT_TRUE(device);
  EXPECT_FALSE(device->has_value());
}

}  // namespace
}  // namespace muster
