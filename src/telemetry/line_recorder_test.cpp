#include "telemetry/line_recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

class LineRecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("recorder_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    options_.file = folder_ / "stats.jsonl";
  }
  void TearDown() override { fs::remove_all(folder_); }

  void put(const std::string& content) { std::ofstream(options_.file) << content; }
  std::string text(const std::string& suffix = "") {
    const auto content = read_file(options_.file.string() + suffix);
    return content ? *content : "(not there)";
  }
  void write(const std::string& line) {
    auto recorder = LineRecorder::open(options_);
    ASSERT_TRUE(recorder) << recorder.error().message;
    ASSERT_TRUE(recorder->write(line));
  }

  fs::path folder_;
  LineRecorder::Options options_;
};

TEST_F(LineRecorderTest, GoesOnAtTheEnd) {
  write("{1}\n");
  write("{2}\n");
  EXPECT_EQ(text(), "{1}\n{2}\n");
}

TEST_F(LineRecorderTest, ATornLastLineIsCut) {
  put("{1}\n{2}\n{\"time\": 17");
  write("{3}\n");
  EXPECT_EQ(text(), "{1}\n{2}\n{3}\n");
  put("{\"time\": 17");
  write("{3}\n");
  EXPECT_EQ(text(), "{3}\n");
  // Longer than one block of the search.
  put("{1}\n{" + std::string(200'000, 'x'));
  write("{3}\n");
  EXPECT_EQ(text(), "{1}\n{3}\n");
}

TEST_F(LineRecorderTest, AFileThatIsNoRecordingIsLeftAlone) {
  put("my only copy");
  const auto recorder = LineRecorder::open(options_);
  ASSERT_FALSE(recorder);
  EXPECT_EQ(recorder.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(text(), "my only copy");
}

TEST_F(LineRecorderTest, OtherJsonIsLeftAlone) {
  for (const std::string other : {"{\"precious\":1}", "{\n  \"precious\": 1\n}\n"}) {
    put(other);
    EXPECT_FALSE(LineRecorder::open(options_)) << other;
    EXPECT_EQ(text(), other);
  }
}

TEST_F(LineRecorderTest, AFileIsKnownByTheKeysOfItsFirstLine) {
  options_.keys = {"time", "machine"};
  const std::string ours = "{\"time\":1.5,\"machine\":\"here\",\"devices\":[]}\n";
  for (const std::string other :
       {"{\"text\":\"my own\"}\n{\"text\":\"lines\"}\n", "{\"time\":1.5}\n", "{\"text\":\"torn",
        "{\"time\":1.5}", "{\"times\":1.", "[1]\n", "{\"time\":1.5,\n\"machine\":\"here\"}\n",
        "\n{\"time\":1.5,\"machine\":\"here\"}\n"}) {
    put(other);
    const auto recorder = LineRecorder::open(options_);
    ASSERT_FALSE(recorder) << other;
    EXPECT_EQ(recorder.error().kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(recorder.error().message, options_.file.string() +
                                            " is there and holds no recording to go on with; "
                                            "another name is needed");
    EXPECT_EQ(text(), other);
  }
  for (const std::string& whole : {std::string(), ours, ours + ours}) {
    for (const std::string& torn : {std::string(), ours.substr(0, 4), ours.substr(0, 20)}) {
      put(whole + torn);
      write(ours);
      EXPECT_EQ(text(), whole + ours) << whole << torn;
    }
  }
  // As many devices as a large machine has.
  const auto large = "{\"time\":1,\"machine\":\"" + std::string(1 << 20, 'x') + "\"}\n";
  put(large + ours.substr(0, 30));
  write(ours);
  EXPECT_EQ(text(), large + ours);
}

TEST_F(LineRecorderTest, BeginsANewFileWhenTheOldOneIsFull) {
  options_.rotate_size = 10;
  options_.rotate_keep = 2;
  for (const auto* line : {"{1}\n", "{2}\n", "{3}\n", "{4}\n", "{5}\n", "{6}\n", "{7}\n"}) {
    write(line);
  }
  EXPECT_EQ(text(), "{7}\n");
  EXPECT_EQ(text(".1"), "{5}\n{6}\n");
  EXPECT_EQ(text(".2"), "{3}\n{4}\n");
  EXPECT_EQ(text(".3"), "(not there)");
}

TEST_F(LineRecorderTest, AnOlderFileThatIsNoRecordingIsLeftAlone) {
  std::ofstream(folder_ / "stats.jsonl.2") << "my only copy";
  options_.rotate_size = 10;
  options_.rotate_keep = 2;
  const auto recorder = LineRecorder::open(options_);
  ASSERT_FALSE(recorder);
  EXPECT_EQ(recorder.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(recorder.error().message.find(options_.file.string() + ".2 is there"), 0U);
  EXPECT_FALSE(fs::exists(options_.file)) << "nothing is made of what is refused";
  options_.rotate_keep = 1;
  EXPECT_TRUE(LineRecorder::open(options_)) << "nothing takes that name";
  EXPECT_EQ(text(".2"), "my only copy");
}

TEST_F(LineRecorderTest, EachFileBeginsWithTheHeader) {
  options_.header = "a,b\n";
  options_.rotate_size = 13;
  for (const auto* line : {"1,2\n", "3,4\n", "5,6\n"}) write(line);
  EXPECT_EQ(text(".1"), "a,b\n1,2\n3,4\n");
  EXPECT_EQ(text(), "a,b\n5,6\n");
  put("a,");  // torn
  write("7,8\n");
  EXPECT_EQ(text(), "a,b\n7,8\n");
  put("a,c\n1,2\n");
  const auto recorder = LineRecorder::open(options_);
  ASSERT_FALSE(recorder);
  EXPECT_EQ(recorder.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(text(), "a,c\n1,2\n");
}

TEST_F(LineRecorderTest, ALineThatIsTooLongForAnyFileIsWrittenAllTheSame) {
  options_.rotate_size = 3;
  write("{123456}\n");
  EXPECT_EQ(text(), "{123456}\n");
  EXPECT_EQ(text(".1"), "(not there)");
}

TEST_F(LineRecorderTest, KeepingNoneBeginsAnew) {
  options_.rotate_size = 4;
  options_.rotate_keep = 0;
  write("{1}\n");
  write("{2}\n");
  EXPECT_EQ(text(), "{2}\n");
  EXPECT_EQ(text(".1"), "(not there)");
}

TEST_F(LineRecorderTest, AFolderThatIsNotThereIsNamed) {
  options_.file = folder_ / "no" / "stats.jsonl";
  const auto recorder = LineRecorder::open(options_);
  ASSERT_FALSE(recorder);
  EXPECT_EQ(recorder.error().kind, ErrorKind::NotFound);
}

TEST_F(LineRecorderTest, AFullDiskIsSaid) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  options_.file = "/dev/full";
  auto recorder = LineRecorder::open(options_);
  ASSERT_TRUE(recorder) << recorder.error().message;
  const auto written = recorder->write("{1}\n");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::ResourceExhausted);
}

}  // namespace
}  // namespace muster
