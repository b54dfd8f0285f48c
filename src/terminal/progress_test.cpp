#include "terminal/progress.h"

#include <gtest/gtest.h>

#include "terminal/text_width.h"

namespace muster {
namespace {

ProgressReading reading(std::optional<double> fraction, std::uint64_t texts, std::uint64_t tokens) {
  ProgressReading made;
  made.fraction = fraction;
  made.counts = {{"texts", texts}, {"tokens", tokens}};
  made.lanes = {{"cpu:0", texts / 4, ""}, {"cpu:1", texts - texts / 4, "restarting"}};
  return made;
}

TimePoint at(double seconds) {
  return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
}

TEST(ProgressMeter, MeasuresSpeeds) {
  ProgressMeter meter;
  const auto first = meter.add(at(0), reading(0.2, 100, 1000));
  EXPECT_TRUE(first.rates_per_second.empty());
  EXPECT_TRUE(first.lane_rates.empty());
  // 400 texts in 2 s, of which cpu:0 did 100.
  const auto second = meter.add(at(2), reading(0.45, 500, 9000));
  EXPECT_EQ(second.rates_per_second, (std::vector<double>{200, 4000}));
  EXPECT_EQ(second.lane_rates, (std::vector<double>{50, 150}));
  EXPECT_DOUBLE_EQ(second.elapsed_seconds, 2);
}

TEST(ProgressMeter, TellsTheTimeLeftAndNeverGoesBack) {
  ProgressMeter meter;
  ProgressView view;
  for (int second = 0; second <= 10; ++second) {
    view = meter.add(at(second), reading(0.05 * second, 1, 1));
  }
  ASSERT_TRUE(view.remaining_seconds);
  EXPECT_NEAR(*view.remaining_seconds, 10, 1e-6);  // half is done in 10 s
  EXPECT_DOUBLE_EQ(*meter.add(at(11), reading(0.4, 1, 1)).reading.fraction, 0.5);
}

TEST(ProgressMeter, ForgetsWhatIsOlderThanItsWindow) {
  ProgressMeter meter;
  meter.add(at(0), reading(0.1, 0, 0));
  for (int second = 1; second <= 20; ++second) {
    meter.add(at(second), reading(0.1, 1000, 0));  // all within the first second, then a stall
  }
  const auto view = meter.add(at(21), reading(0.1, 1000, 0));
  EXPECT_DOUBLE_EQ(view.rates_per_second[0], 0);
  EXPECT_FALSE(view.remaining_seconds);
}

ProgressView view_at_42_percent() {
  ProgressView view;
  view.reading = reading(0.42, 12344, 0);
  view.rates_per_second = {1234.4, 56789.0};
  view.lane_rates = {308.6, 925.8};
  view.remaining_seconds = 11.2;
  return view;
}

std::vector<std::string> rendered(const ProgressView& view, std::size_t width, std::size_t height,
                                  bool has_color = false, bool has_utf8 = true) {
  return render_progress(view, {.is_terminal = true,
                                .can_redraw = true,
                                .width = width,
                                .height = height,
                                .has_color = has_color,
                                .has_utf8 = has_utf8});
}

using Lines = std::vector<std::string>;

// 42 % of 30 columns are 100.8 eighths: twelve and five eighths. cpu:0 is a third as fast as cpu:1,
// which is 3.3 of 10 columns: 26.7 eighths, and has done a quarter of the texts.
TEST(RenderProgress, ShowsEverythingWhereThereIsRoom) {
  EXPECT_EQ(rendered(view_at_42_percent(), 120, 24),
            (Lines{" cpu:0  ███▍        309 texts/s   25 %",
                   " cpu:1  ██████████  926 texts/s   75 %  restarting",
                   " 42 % [████████████▋                 ]  12,344 texts  1,234 texts/s  "
                   "56,789 tokens/s  ETA 0:12"}));
}

TEST(RenderProgress, IsOneLineOnALowOrNarrowScreen) {
  EXPECT_EQ(rendered(view_at_42_percent(), 120, 4, false, false),
            (Lines{" 42 % [#############                 ]  12,344 texts  1,234 texts/s  "
                   "56,789 tokens/s  ETA 0:12"
                   "  cpu:1 restarting"}));
  // Beside the rest, 18 of 40 columns are left for the bar: 42 % are 60 of its 144 eighths.
  EXPECT_EQ(rendered(view_at_42_percent(), 40, 24),
            (Lines{" 42 % [███████▌          ]  12,344 texts"}));
  auto alone = view_at_42_percent();
  alone.reading.lanes.resize(1);
  alone.lane_rates.resize(1);
  EXPECT_EQ(rendered(alone, 80, 24).size(), 1U) << "one device is the whole";
}

TEST(RenderProgress, NamesThePhaseBeforeAnythingIsCounted) {
  ProgressView view;
  view.reading.phase = "starting workers";
  view.reading.lanes = {{"cpu:0", 0, "starting"}, {"cpu:1", 0, "starting"}};
  view.reading.counts = {{"texts", 0}};
  view.reading.fraction = 0;
  EXPECT_EQ(rendered(view, 80, 24), (Lines{" cpu:0              starting",
                                           " cpu:1              starting", "starting workers"}));
  view.elapsed_seconds = 2.7;
  EXPECT_EQ(rendered(view, 80, 24).back(), "starting workers, 2 s");
  EXPECT_EQ(describe_progress(view), "starting workers, 2 s, cpu:0 starting, cpu:1 starting");
}

TEST(RenderProgress, NeverExceedsTheWidth) {
  for (const bool has_utf8 : {true, false}) {
    for (std::size_t width = 0; width < 130; ++width) {
      auto view = view_at_42_percent();
      view.reading.remarks = {"file 2 of 5", "a/name"};
      for (const auto& line : rendered(view, width, 24, false, has_utf8)) {
        EXPECT_LE(display_width(line), width) << line;
      }
      view.reading.fraction.reset();
      for (const auto& line : rendered(view, width, 24, false, has_utf8)) {
        EXPECT_LE(display_width(line), width) << line;
      }
    }
  }
}

TEST(RenderProgress, ColoursBarsAndStates) {
  const auto lines = rendered(view_at_42_percent(), 80, 24, true);
  EXPECT_NE(lines[1].find("\033[0;1;38;5;214mrestarting\033[0m"), std::string::npos);
  EXPECT_NE(lines[2].find("[\033[0;38;5;36m█"), std::string::npos);
  for (const auto& line : rendered(view_at_42_percent(), 80, 24)) {
    EXPECT_EQ(line.find('\033'), std::string::npos);
  }
}

TEST(DescribeProgress, IsASentenceForALog) {
  EXPECT_EQ(describe_progress(view_at_42_percent()),
            "42 %, 12,344 texts, 1,234 texts/s, 56,789 tokens/s, ETA 0:12, cpu:1 restarting");
  auto unknown = view_at_42_percent();
  unknown.reading.fraction.reset();
  unknown.remaining_seconds.reset();
  unknown.reading.lanes.clear();
  EXPECT_EQ(describe_progress(unknown), "12,344 texts, 1,234 texts/s, 56,789 tokens/s");
}

TEST(FormatDuration, RoundsUp) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(6.2), "0:07");
  EXPECT_EQ(format_duration(754), "12:34");
  EXPECT_EQ(format_duration(3723), "1:02:03");
}

}  // namespace
}  // namespace muster
