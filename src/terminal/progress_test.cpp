#include "terminal/progress.h"

#include <gtest/gtest.h>

#include "terminal/text_width.h"

namespace muster {
namespace {

ProgressReading reading(std::optional<double> fraction, std::uint64_t texts, std::uint64_t tokens) {
  return {.fraction = fraction,
          .counts = {{"texts", texts}, {"tokens", tokens}},
          .devices = {"cpu:0", "cpu:1 restarting"}};
}

TimePoint at(double seconds) {
  return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
}

TEST(ProgressMeter, MeasuresSpeedAndTimeLeft) {
  ProgressMeter meter;
  const auto first = meter.add(at(0), reading(0.2, 100, 1000));
  EXPECT_TRUE(first.rates_per_second.empty());
  EXPECT_FALSE(first.remaining_seconds);
  // 400 texts in 2 s; a quarter of the whole in 2 s, 0.55 to go: 4.4 s.
  const auto second = meter.add(at(2), reading(0.45, 500, 9000));
  ASSERT_EQ(second.rates_per_second.size(), 2U);
  EXPECT_DOUBLE_EQ(second.rates_per_second[0], 200);
  EXPECT_DOUBLE_EQ(second.rates_per_second[1], 4000);
  ASSERT_TRUE(second.remaining_seconds);
  EXPECT_NEAR(*second.remaining_seconds, 4.4, 1e-9);
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
  return {.reading = reading(0.42, 12345, 0),
          .rates_per_second = {1234.4, 56789.0},
          .remaining_seconds = 11.2};
}

TEST(RenderProgress, ShowsEverythingWhereThereIsRoom) {
  // 42 % of 30 columns: 12 filled, the last as an arrow.
  EXPECT_EQ(render_progress(view_at_42_percent(), 200, false),
            " 42 % [===========>                  ]  12,345 texts  1,234 texts/s  56,789 tokens/s"
            "  ETA 0:12  cpu:0  cpu:1 restarting");
}

TEST(RenderProgress, NeverExceedsTheWidth) {
  for (std::size_t width = 0; width < 130; ++width) {
    EXPECT_LE(display_width(render_progress(view_at_42_percent(), width, false)), width) << width;
    auto unknown = view_at_42_percent();
    unknown.reading.fraction.reset();
    EXPECT_LE(display_width(render_progress(unknown, width, false)), width) << width;
  }
}

TEST(RenderProgress, ColorsOnlyTheBar) {
  const auto line = render_progress(view_at_42_percent(), 30, true);
  EXPECT_NE(line.find("\033[32m="), std::string::npos);
  EXPECT_EQ(render_progress(view_at_42_percent(), 30, false).find('\033'), std::string::npos);
}

TEST(DescribeProgress, IsASentenceForALog) {
  EXPECT_EQ(describe_progress(view_at_42_percent()),
            "42 %, 12,345 texts, 1,234 texts/s, 56,789 tokens/s, ETA 0:12, cpu:1 restarting");
  auto unknown = view_at_42_percent();
  unknown.reading.fraction.reset();
  unknown.remaining_seconds.reset();
  unknown.reading.devices.clear();
  EXPECT_EQ(describe_progress(unknown), "12,345 texts, 1,234 texts/s, 56,789 tokens/s");
}

TEST(FormatDuration, RoundsUp) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(6.2), "0:07");
  EXPECT_EQ(format_duration(754), "12:34");
  EXPECT_EQ(format_duration(3723), "1:02:03");
}

}  // namespace
}  // namespace muster
