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
  ProgressReading reading;
  reading.fraction = 0.5;
  reading.counts = {{"texts", count}};
  return reading;
}

ProgressReading of_two(std::uint64_t first, std::uint64_t second) {
  auto reading = texts(first + second);
  reading.lanes = {{"cpu:0", first, ""}, {"cpu:1", second, ""}};
  return reading;
}

constexpr TerminalInfo kTerminal{.is_terminal = true, .can_redraw = true};

TEST_F(ProgressBarTest, PrintsLinesEverMoreSeldomWhereThereIsNoTerminal) {
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

TEST_F(ProgressBarTest, ALongNoticeIsBrokenOnATerminalAlone) {
  const std::string notice =
      "measuring which precision is fastest here (once for this model, processor and cores)";
  ProgressBar log(fd(), {}, clock_);
  log.notice(notice);
  EXPECT_TRUE(written().ends_with("muster: " + notice + "\n"));
  ProgressBar bar(fd(), kTerminal, clock_);
  bar.notice(notice);
  EXPECT_TRUE(written().ends_with(
      "muster: measuring which precision is fastest here (once for this model,\n"
      "  processor and cores)\n"));
}

// 5 s, 15 s, 35 s, 75 s, then 60 s after each.
TEST_F(ProgressBarTest, ALogGetsALineAMinuteInTheEnd) {
  ProgressBar bar(fd(), {}, clock_);
  std::vector<int> at;
  for (int second = 0; second <= 200; ++second, clock_.advance(std::chrono::seconds(1))) {
    bar.update(texts(0));
    if (!written().empty()) at.push_back(second);
  }
  EXPECT_EQ(at, (std::vector<int>{5, 15, 35, 75, 135, 195}));
}

TEST_F(ProgressBarTest, ATerminalThatCannotMoveItsCursorGetsLinesToo) {
  ProgressBar bar(fd(), {.is_terminal = true}, clock_);
  bar.update(texts(0));
  clock_.advance(std::chrono::seconds(5));
  bar.update(texts(50));
  EXPECT_EQ(written(), "muster: 50 %, 50 texts, 10 texts/s\n");
}

TEST_F(ProgressBarTest, RedrawsOneLineOnATerminalAndTakesItAway) {
  {
    ProgressBar bar(fd(), kTerminal, clock_);
    bar.update(texts(7));
    EXPECT_EQ(written(), " 50 % [###############               ]  7 texts\033[K")
        << "at once, with the first reading";
    bar.update(texts(7));
    EXPECT_EQ(written(), "") << "nothing changed";
    bar.notice("worker cpu:0 died");
    EXPECT_EQ(written(),
              "\r\033[Jmuster: worker cpu:0 died\n 50 % [###############               ]  7 texts")
        << "the bar stands below the notice";
    bar.update(texts(8));
    EXPECT_EQ(written(), "\r 50 % [###############               ]  8 texts\033[K");
  }
  EXPECT_EQ(written(), "\r\033[J");
}

TEST_F(ProgressBarTest, RedrawsALineForEachLane) {
  {
    ProgressBar bar(fd(), kTerminal, clock_);
    bar.update(of_two(3, 1));
    EXPECT_EQ(written(),
              " cpu:0               75 %\033[K\n"
              " cpu:1               25 %\033[K\n"
              " 50 % [###############               ]  4 texts\033[K");
    bar.update(of_two(3, 3));
    EXPECT_EQ(written().rfind("\r\033[2A cpu:0               50 %\033[K\n", 0), 0U);
    bar.notice("a notice");
    EXPECT_EQ(written().rfind("\r\033[2A\033[Jmuster: a notice\n cpu:0 ", 0), 0U);
  }
  EXPECT_EQ(written(), "\r\033[2A\033[J");
}

TEST_F(ProgressBarTest, ErasesWhatIsNotDrawnAnyMore) {
  ProgressBar bar(fd(), kTerminal, clock_);
  bar.update(of_two(3, 1));
  written();
  bar.update(texts(4));
  EXPECT_EQ(written(), "\r\033[2A 50 % [###############               ]  4 texts\033[K\033[J");
}

}  // namespace
}  // namespace muster
