#include "log/log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace muster {
namespace {

namespace fs = std::filesystem;

class LogFolder : public testing::Test {
 protected:
  LogFolder() {
    const auto* name = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ =
        fs::path(testing::TempDir()) / ("muster_log_" + std::to_string(getpid()) + "_" + name);
    fs::create_directories(folder_);
  }
  ~LogFolder() override { fs::remove_all(folder_); }

  std::unique_ptr<Log> open(LogOptions options) {
    options.folder = folder_;
    auto log = Log::open(options);
    EXPECT_TRUE(log) << log.error().message;
    return std::move(*log);
  }

  std::vector<std::string> lines(const std::string& name) const {
    std::ifstream file(folder_ / name);
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }

  fs::path folder_;
};

TEST(LogLineText, SaysWhenHowBadWhereAndWhat) {
  // 1,700,000,000 s after 1970 is 2023-11-14 22:13:20 UTC.
  EXPECT_EQ(text_line({.level = LogLevel::Warning,
                       .message = "it hangs",
                       .device = "cuda:0",
                       .request_id = "r1"},
                      1'700'000'000'007),
            "2023-11-14T22:13:20.007Z warning cuda:0 it hangs [request r1]");
  EXPECT_EQ(text_line({.message = "ready"}, 1'700'000'000'120),
            "2023-11-14T22:13:20.120Z info    ready");
}

TEST(LogLineText, StaysOneLineWhateverIsInIt) {
  EXPECT_EQ(text_line({.message = "a\nb\x1b[2J\xff\xc3\xa9"}, 1'700'000'000'000),
            "2023-11-14T22:13:20.000Z info    a\\x0ab\\x1b[2J\\xff\xc3\xa9");
}

TEST(LogLineJson, HasTheSameFields) {
  EXPECT_EQ(json_line({.level = LogLevel::Error,
                       .message = "say \"no\"\n",
                       .device = "cpu:1",
                       .request_id = "r1"},
                      1'700'000'000'007),
            R"({"time":"2023-11-14T22:13:20.007Z","level":"error","device":"cpu:1",)"
            R"("request_id":"r1","message":"say \"no\"\n"})");
  EXPECT_TRUE(nlohmann::json::accept(json_line({.message = "\xff"}, 0)));
}

TEST(LogLevels, HaveNames) {
  for (const auto level :
       {LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error, LogLevel::Off}) {
    EXPECT_EQ(parse_log_level(log_level_name(level)), level);
  }
  EXPECT_EQ(parse_log_level("loud"), std::nullopt);
}

TEST_F(LogFolder, HasAFileForTheProgramAndOneForEachDevice) {
  const auto log = open({});
  log->write({.message = "ready"});
  log->write({.message = "loads", .device = "cuda:0"});
  log->write({.message = "loads too", .device = "cuda:1:0"});
  ASSERT_EQ(lines("muster.log").size(), 1U);
  EXPECT_TRUE(lines("muster.log")[0].ends_with(" info    ready"));
  ASSERT_EQ(lines("worker-cuda-0.log").size(), 1U);
  EXPECT_TRUE(lines("worker-cuda-0.log")[0].ends_with("cuda:0 loads"));
  EXPECT_EQ(lines("worker-cuda-1-0.log").size(), 1U);
}

TEST_F(LogFolder, ChangesItsLevelWhileItRuns) {
  const auto log = open({.level = LogLevel::Warning});
  log->write({.level = LogLevel::Info, .message = "one"});
  log->write({.level = LogLevel::Warning, .message = "two"});
  log->set_level(LogLevel::Debug);
  log->write({.level = LogLevel::Debug, .message = "three"});
  log->set_level(LogLevel::Off);
  log->write({.level = LogLevel::Error, .message = "four"});
  const auto all = lines("muster.log");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(all[0].ends_with("two"));
  EXPECT_TRUE(all[1].ends_with("three"));
}

TEST_F(LogFolder, BeginsANewFileWhenOneIsFull) {
  const auto log = open({.rotate_size = 200, .rotate_keep = 2});
  // Each line has 24 + 9 + 60 bytes and its end: two fit into 200.
  for (int i = 0; i < 12; ++i) log->write({.message = std::string(60, 'x')});
  EXPECT_EQ(lines("muster.log").size(), 2U);
  EXPECT_EQ(lines("muster.1.log").size(), 2U);
  EXPECT_EQ(lines("muster.2.log").size(), 2U);
  EXPECT_FALSE(fs::exists(folder_ / "muster.3.log"));
}

TEST_F(LogFolder, CountsWhatAFullDiskLosesAndTellsItOnce) {
  fs::create_symlink("/dev/full", folder_ / "muster.log");
  const auto log = open({});
  testing::internal::CaptureStderr();
  log->write({.message = "one"});
  log->write({.message = "two"});
  const auto told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(log->lost_count(), 2U);
  EXPECT_TRUE(told.starts_with("muster: lines of the log are lost: ")) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
}

TEST_F(LogFolder, SaysHowManyLinesAreMissingOnceThereIsRoomAgain) {
  fs::create_symlink("/dev/full", folder_ / "muster.log");
  const auto log = open({});
  testing::internal::CaptureStderr();
  log->write({.message = "one"});
  log->write({.message = "two"});
  fs::remove(folder_ / "muster.log");
  ASSERT_TRUE(log->reopen());
  log->write({.message = "three"});
  log->write({.message = "four"});
  testing::internal::GetCapturedStderr();
  const auto all = lines("muster.log");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_TRUE(all[0].ends_with(" warning 2 lines of the log were lost before this")) << all[0];
  EXPECT_TRUE(all[1].ends_with("three"));
  EXPECT_EQ(log->lost_count(), 2U);
}

// A full disk has room for a part of a line. Here a file may have ten bytes more than it has.
TEST_F(LogFolder, WhatFollowsATornLineBeginsALineOfItsOwn) {
  const auto log = open({.format = LogFormat::Json});
  log->write({.message = "one"});
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{.rlim_cur = fs::file_size(folder_ / "muster.log") + 10,
                      .rlim_max = usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  log->write({.message = "two"});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &usual), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_EQ(log->lost_count(), 1U);
  log->write({.message = "three"});
  const auto all = lines("muster.log");
  ASSERT_EQ(all.size(), 4U) << "the second is torn";
  EXPECT_EQ(all[1].size(), 10U);
  EXPECT_EQ(nlohmann::json::parse(all[2])["message"], "1 lines of the log were lost before this");
  EXPECT_EQ(nlohmann::json::parse(all[3])["message"], "three");
}

// An operator looks for a worker's file before the worker has anything to say.
TEST_F(LogFolder, HasTheFilesOfItsDevicesFromTheStartAndAfterReopening) {
  const auto log = open({.level = LogLevel::Error, .devices = {"cuda:0", "cpu:1"}});
  EXPECT_TRUE(fs::exists(folder_ / "worker-cuda-0.log"));
  EXPECT_TRUE(fs::exists(folder_ / "worker-cpu-1.log"));
  fs::rename(folder_ / "worker-cpu-1.log", folder_ / "old.log");
  ASSERT_TRUE(log->reopen());
  EXPECT_TRUE(fs::exists(folder_ / "worker-cpu-1.log"));
}

TEST_F(LogFolder, IsOpenedAnewWhenItsFilesWereMoved) {
  const auto log = open({});
  log->write({.message = "one"});
  fs::rename(folder_ / "muster.log", folder_ / "old.log");
  ASSERT_TRUE(log->reopen());
  log->write({.message = "two"});
  EXPECT_EQ(lines("old.log").size(), 1U);
  EXPECT_EQ(lines("muster.log").size(), 1U);
}

TEST_F(LogFolder, RefusesAPlaceThatIsNone) {
  std::ofstream(folder_ / "file") << "x";
  EXPECT_FALSE(Log::open({.folder = folder_ / "file" / "logs"}));
}

TEST(LogToStandardError, HasAllLines) {
  const auto log = Log::open({});
  ASSERT_TRUE(log);
  testing::internal::CaptureStderr();
  (*log)->write({.message = "ready", .device = "cpu:0"});
  EXPECT_TRUE(testing::internal::GetCapturedStderr().ends_with(" info    cpu:0 ready\n"));
}

}  // namespace
}  // namespace muster
