#include "terminal/progress_bar.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace muster {
namespace {

class FakeClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(std::chrono::seconds step) { now_ += step; }

 private:
  TimePoint now_{};
};

// A pipe whose other end the test reads: never a terminal, so `terminal` says what to pretend.
class ProgressBarTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe2(ends_.data(), O_NONBLOCK), 0); }
  void TearDown() override {
    close(ends_[0]);
    close(ends_[1]);
  }

  int fd() const { return ends_[1]; }

  std::string written() const {
    std::array<char, 4096> buffer{};
    const auto size = read(ends_[0], buffer.data(), buffer.size());
    return size > 0 ? std::string(buffer.data(), static_cast<std::size_t>(size)) : std::string();
  }

  FakeClock clock_;

 private:
  std::array<int, 2> ends_{};
};

ProgressReading texts(std::uint64_t count) {
  return {.fraction = 0.5, .counts = {{"texts", count}}, .devices = {}};
}

TEST_F(ProgressBarTest, PrintsALineEveryFiveSecondsWhereThereIsNoTerminal) {
  ProgressBar bar(fd(), {}, clock_);
  bar.update(texts(0));
  EXPECT_EQ(written(), "");
  clock_.advance(std::chrono::seconds(4));
  bar.update(texts(40));
  EXPECT_EQ(written(), "");
  clock_.advance(std::chrono::seconds(1));
  bar.update(texts(50));
  EXPECT_EQ(written(), "muster: 50 %, 50 texts, 10 texts/s\n");
  bar.update(texts(51));
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressBarTest, RedrawsOneLineOnATerminalAndTakesItAway) {
  {
    ProgressBar bar(fd(), {.is_terminal = true}, clock_);
    bar.update(texts(7));
    const auto drawn = written();
    EXPECT_EQ(drawn.rfind("\r\033[K 50 % [", 0), 0U) << drawn;
    EXPECT_EQ(drawn.find('\n'), std::string::npos);
    bar.update(texts(7));
    EXPECT_EQ(written(), "") << "nothing changed";
    bar.notice("worker cpu:0 died");
    const auto noticed = written();
    EXPECT_EQ(noticed.rfind("\r\033[Kmuster: worker cpu:0 died\n", 0), 0U) << noticed;
    EXPECT_NE(noticed.find("50 %"), std::string::npos) << "the bar stands below the notice";
  }
  EXPECT_EQ(written(), "\r\033[K");
}

}  // namespace
}  // namespace muster
