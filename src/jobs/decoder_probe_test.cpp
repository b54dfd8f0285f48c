#include "jobs/decoder_probe.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "base/build_info.h"
#include "coordinator/decoder_fixture.h"

namespace muster {
namespace {

/// Asks a counting_worker, which tells 100 tokens/s of the first precision, 200 of the second.
class DecoderProbeTest : public testing::Test {
 protected:
  ~DecoderProbeTest() override { ::unsetenv("COUNTING_WORKER"); }

  Result<DecoderVerdict> ask(const std::string& orders, bool is_cancelled = false) {
    ::setenv("COUNTING_WORKER", orders.c_str(), 1);
    const ProbeDecoder probe{.source = "counting",
                             .precisions = {DecoderPrecision::Fp32, DecoderPrecision::Own},
                             .measures_divergence = true,
                             .lengths = {1},
                             .ids = {5}};
    return probe_decoder({.device = {},  // cpu:0
                          .worker_program = counting_worker(),
                          .torch_root = {},
                          .build = std::string(build_name()),
                          .time_most = time_most_},
                         probe, clock_, [this, is_cancelled] {
                           clock_.ahead += std::exchange(pause_, Duration{0});
                           return is_cancelled;
                         });
  }

  SetClock clock_;
  Duration pause_{0};  // before the first look at the time
  Duration time_most_ = std::chrono::minutes(5);
};

TEST_F(DecoderProbeTest, TellsWhatTheWorkerMeasured) {
  const auto verdict = ask("");
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_EQ(verdict->measures, (std::vector<DecoderMeasure>{{DecoderPrecision::Fp32, 100, 0.0},
                                                            {DecoderPrecision::Own, 200, 0.001}}));
}

TEST_F(DecoderProbeTest, AWorkerThatDiesIsAnErrorWithItsReason) {
  const auto died = ask("die_at_probe");
  ASSERT_FALSE(died);
  EXPECT_EQ(died.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(died.error().message.find("cpu:0: the worker died (signal 6 (Aborted)"), 0U)
      << died.error().message;
}

// A library that warns once a layer.
TEST_F(DecoderProbeTest, AWorkerThatPrintsALotIsListenedTo) {
  const auto verdict = ask("talk_at_probe");
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_EQ(verdict->measures.size(), 2U);
}

TEST_F(DecoderProbeTest, RefusesAnotherBuild) {
  const auto other = ask("other_build");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::Unsupported);
}

TEST_F(DecoderProbeTest, EndsWhenItIsToldToOrTakesTooLong) {
  EXPECT_EQ(ask("hang_at_probe", /*is_cancelled=*/true).error().kind, ErrorKind::Cancelled);
  time_most_ = Duration{0};
  const auto late = ask("");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::DeadlineExceeded);
  EXPECT_EQ(late.error().message, "cpu:0: the worker was not done within 0 s");
}

// A container that was paused: its worker could not measure meanwhile.
TEST_F(DecoderProbeTest, TimeInWhichThisProcessStoodStillDoesNotCount) {
  pause_ = std::chrono::minutes(6);
  const auto verdict = ask("");
  ASSERT_TRUE(verdict) << verdict.error().message;
}

}  // namespace
}  // namespace muster
