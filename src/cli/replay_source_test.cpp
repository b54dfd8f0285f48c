#include "cli/replay_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "telemetry/recording.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// A recording of one GPU: a moment each second, NVLink at 2 GB/s.
class Replay : public ::testing::Test {
 protected:
  Replay() : file_(fs::temp_directory_path() / ("replay_test." + std::to_string(getpid()))) {}
  ~Replay() override { fs::remove(file_); }

  static std::string line(int second) {
    TelemetrySnapshot snapshot;
    snapshot.unix_seconds = 1000 + second;
    snapshot.devices.resize(1);
    auto& status = snapshot.devices[0];
    status.name = "cuda:0";
    status.identity.device.kind = DeviceKind::Cuda;
    status.is_up = true;
    status.readings.set(Reading::GpuNvlinkSent, 2e9 * second);
    return recording_line(snapshot, {});
  }

  void write(const std::string& text) const { std::ofstream(file_) << text; }

  std::unique_ptr<ReplaySource> open_seconds(int count) const {
    std::string text;
    for (int second = 0; second < count; ++second) text += line(second);
    write(text);
    return std::move(*ReplaySource::open(file_));
  }

  static TopData frame(ReplaySource& source) { return std::move((*source.frame()).value()); }

  const fs::path file_;
};

TEST_F(Replay, BeginsStoppedAtTheFirstMoment) {
  const auto source = open_seconds(3);
  const auto first = frame(*source);
  EXPECT_EQ(first.snapshot.unix_seconds, 1000);
  EXPECT_EQ(first.replay->index, 0U);
  EXPECT_EQ(first.replay->count, 3U);
  EXPECT_FALSE(first.replay->is_playing);
  EXPECT_EQ(frame(*source).snapshot.unix_seconds, 1000);
}

TEST_F(Replay, StepsBothWaysWithinTheRecording) {
  const auto source = open_seconds(3);
  source->take(TopRequestKind::StepBack);
  EXPECT_EQ(frame(*source).snapshot.unix_seconds, 1000);
  for (int i = 0; i < 5; ++i) source->take(TopRequestKind::StepOn);
  const auto last = frame(*source);
  EXPECT_EQ(last.snapshot.unix_seconds, 1002);
  EXPECT_DOUBLE_EQ(last.trends[0].nvlink_bytes_per_second.value(), 2e9);
  source->take(TopRequestKind::StepBack);
  EXPECT_EQ(frame(*source).snapshot.unix_seconds, 1001);
}

TEST_F(Replay, PlaysToTheEndAndThenFromTheBeginning) {
  const auto source = open_seconds(3);
  (void)frame(*source);
  source->take(TopRequestKind::PlayOrStop);
  EXPECT_EQ(frame(*source).snapshot.unix_seconds, 1000);  // what the key is answered with
  EXPECT_EQ(frame(*source).snapshot.unix_seconds, 1001);
  EXPECT_EQ(source->interval(), std::chrono::seconds(1));
  source->take(TopRequestKind::Faster);
  source->take(TopRequestKind::Faster);
  EXPECT_EQ(source->interval(), std::chrono::milliseconds(250));
  (void)frame(*source);  // the answer to the key
  const auto last = frame(*source);
  EXPECT_EQ(last.snapshot.unix_seconds, 1002);
  EXPECT_FALSE(last.replay->is_playing);
  source->take(TopRequestKind::PlayOrStop);
  EXPECT_EQ(frame(*source).snapshot.unix_seconds, 1000);
}

TEST_F(Replay, LeavesOutALineThatWasCutOff) {
  write(line(0) + line(1).substr(0, 40));
  const auto source = std::move(*ReplaySource::open(file_));
  EXPECT_EQ(frame(*source).replay->count, 1U);
}

TEST_F(Replay, NamesTheLineThatIsBroken) {
  write(line(0) + "{\"time\": \n");
  const auto source = std::move(*ReplaySource::open(file_));
  source->go_to_end();
  const auto broken = source->frame();
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(broken.error().message.find(file_.string() + ":2: "), 0U) << broken.error().message;
}

TEST_F(Replay, RefusesAFileWithoutAMoment) {
  write("");
  EXPECT_EQ(ReplaySource::open(file_).error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(ReplaySource::open(file_.string() + ".none").error().kind, ErrorKind::NotFound);
}

}  // namespace
}  // namespace muster
