// Energy of one-second windows against the true integral of the power, by the stand-in driver's
// sensor model on a stepped clock.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "hw/device_sources.h"
#include "telemetry/edge_search.h"
#include "telemetry/energy_window.h"

namespace muster {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kLibrary = MUSTER_BINARY_DIR "/lib/libfakenvml.so";

// GPU 0 works in bursts that no window is a multiple of; GPU 1 has no counter; GPU 2 loses its
// count after 5000 s; of GPU 3 the counter may not be read; GPU 4 works in phases.
constexpr const char* kScenario = R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
  {"model": "H200", "load": {"square": {"period": 0.73, "low": 0.1, "high": 1.0, "duty": 0.4}}},
  {"model": "H200", "load": 0.5, "energy_missing": {"from": 0}},
  {"model": "H200", "load": 0.5, "energy_resets": [5000]},
  {"model": "H200", "load": 0.5, "field_errors": {"83": "NO_PERMISSION"},
   "errors": {"nvmlDeviceGetTotalEnergyConsumption": "NO_PERMISSION"}},
  {"model": "H200", "load": {"steps": [[0, 0.1], [2, 1.0], [5, 0.3]], "period": 7}}]})";

// Two of each of four generations. No two work or refresh their counter at the same times. A
// window of a second has a whole burst of each, so its readings show the highest power.
constexpr const char* kGenerations = R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
  {"model": "V100-16G", "refresh_phase_s": 0.003,
   "load": {"square": {"period": 0.71, "low": 0.1, "high": 1.0, "duty": 0.4}}},
  {"model": "V100-32G", "refresh_phase_s": 0.017,
   "load": {"square": {"period": 0.61, "low": 0.2, "high": 0.9, "duty": 0.5, "phase": 0.1}}},
  {"model": "A100-40G", "refresh_phase_s": 0.029,
   "load": {"square": {"period": 0.53, "low": 0.0, "high": 1.0, "duty": 0.6, "phase": 0.2}}},
  {"model": "A100-80G", "refresh_phase_s": 0.041,
   "load": {"square": {"period": 0.47, "low": 0.3, "high": 0.8, "duty": 0.6}}},
  {"model": "H100-80G", "refresh_phase_s": 0.053,
   "load": {"square": {"period": 0.67, "low": 0.1, "high": 1.0, "duty": 0.4, "phase": 0.3}}},
  {"model": "H200", "refresh_phase_s": 0.067,
   "load": {"square": {"period": 0.43, "low": 0.2, "high": 1.0, "duty": 0.6}}},
  {"model": "B200", "refresh_phase_s": 0.079,
   "load": {"square": {"period": 0.59, "low": 0.0, "high": 0.7, "duty": 0.5, "phase": 0.4}}},
  {"model": "B200", "refresh_phase_s": 0.091,
   "load": {"square": {"period": 0.37, "low": 0.1, "high": 1.0, "duty": 0.7}}}]})";

/// The driver with its clock in our hands.
class EnergyPhases : public testing::Test {
 protected:
  explicit EnergyPhases(const char* scenario = kScenario, std::size_t gpu_count = 5)
      : scenario_text_(scenario), gpu_count_(gpu_count) {}

  void SetUp() override {
    scenario_ = std::filesystem::path(testing::TempDir()) /
                ("energy_phases." + std::to_string(::getpid()) + ".json");
    std::ofstream(scenario_) << scenario_text_;
    ::setenv("FAKENVML_SCENARIO", scenario_.c_str(), 1);
    library_ = ::dlopen(kLibrary, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    set_time_ =
        reinterpret_cast<void (*)(std::uint64_t)>(::dlsym(library_, "fakenvml_set_time_ns"));
    true_energy_ = reinterpret_cast<double (*)(unsigned, double, double)>(
        ::dlsym(library_, "fakenvml_true_energy_joules"));
    ASSERT_NE(set_time_, nullptr);
    ASSERT_NE(true_energy_, nullptr);
    move_to(TimePoint());
    NvmlOptions options;
    options.libraries = {kLibrary};
    auto source = open_nvml(options, watch_);
    ASSERT_TRUE(source) << source.error().message;
    source_ = std::make_unique<DeviceSource>(*std::move(source));
    ASSERT_EQ(source_->samplers.size(), gpu_count_);
  }
  void TearDown() override {
    source_.reset();
    if (library_ != nullptr) ::dlclose(library_);
    ::unsetenv("FAKENVML_SCENARIO");
    std::filesystem::remove(scenario_);
  }

  void move_to(TimePoint time) {
    now_ = time;
    set_time_(static_cast<std::uint64_t>(time.time_since_epoch().count()));
  }

  // Looks a millisecond apart, as EdgeSearch does, with calls of 20 us.
  EnergyEdge next_edge(std::size_t gpu) {
    EdgeDetector detector;
    for (int look = 0; look < 250; ++look) {
      const auto before = now_;
      move_to(now_ + microseconds(10));
      const auto joules = source_->samplers[gpu]->energy_joules(watch_);
      move_to(now_ + microseconds(10));
      if (!joules) return {0, std::nullopt, 0, {}, "there is no energy counter"};
      if (const auto found = detector.look(before, *joules, now_)) {
        return {0, found->at, found->joules, found->within, ""};
      }
      move_to(before + milliseconds(1));
    }
    return {0, std::nullopt, 0, {}, "the energy counter stood still"};
  }

  DeviceSample visit(std::size_t gpu) {
    DeviceSample sample;
    sample.at = now_;
    sample.tiers = TierSet(0b001);
    source_->samplers[gpu]->sample(sample.tiers, watch_, sample);
    return sample;
  }

  // A window of a second with ten visits.
  WindowEnergy window_of_a_second(std::size_t gpu) {
    const auto first = next_edge(gpu);
    const auto begin = now_;
    EnergyWindow window(begin, first);
    for (int i = 0; i < 10; ++i) {
      window.add(visit(gpu));
      move_to(begin + milliseconds(100 * (i + 1)));
    }
    window.add(visit(gpu));
    last_begin_ = first.at;
    return window.close(now_, next_edge(gpu));
  }

  const char* scenario_text_;
  std::size_t gpu_count_;
  NoWatch watch_;
  TimePoint now_;
  std::optional<TimePoint> last_begin_;  // the first edge of the last window
  std::filesystem::path scenario_;
  void* library_ = nullptr;
  void (*set_time_)(std::uint64_t) = nullptr;
  double (*true_energy_)(unsigned, double, double) = nullptr;
  std::unique_ptr<DeviceSource> source_;
};

TEST_F(EnergyPhases, AThousandWindowsAreWithinHalfAPercent) {
  constexpr int kWindows = 1000;
  constexpr double kLimit = 0.005;
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> pause_us(0, 730'000);
  double worst = 0;
  double worst_plain = 0;
  for (int i = 0; i < kWindows; ++i) {
    move_to(now_ + microseconds(pause_us(random)));
    const auto plain_from = now_;
    const auto plain_joules = *source_->samplers[0]->energy_joules(watch_);
    const auto energy = window_of_a_second(0);
    ASSERT_EQ(energy.method, "counter") << energy.missing_reason;
    const double from = muster::seconds(last_begin_->time_since_epoch());
    const double truth = true_energy_(0, from, from + energy.counted_seconds);
    const double error = std::abs(*energy.counted_joules - truth) / truth;
    EXPECT_LE(error, kLimit) << "window " << i;
    // What the window says of itself covers the error, but for the counter's whole millijoules.
    EXPECT_LE(error * truth, *energy.error_joules + 0.002) << "window " << i;
    worst = std::max(worst, error);
    // A plain difference of two readings over the same time, for comparison.
    const double plain_truth = true_energy_(0, muster::seconds(plain_from.time_since_epoch()),
                                            muster::seconds(now_.time_since_epoch()));
    const double plain = *source_->samplers[0]->energy_joules(watch_) - plain_joules;
    worst_plain = std::max(worst_plain, std::abs(plain - plain_truth) / plain_truth);
  }
  RecordProperty("windows", kWindows);
  RecordProperty("worst_percent", std::to_string(worst * 100));
  RecordProperty("plain_worst_percent", std::to_string(worst_plain * 100));
}

class EnergyOfGenerations : public EnergyPhases {
 protected:
  EnergyOfGenerations() : EnergyPhases(kGenerations, kGpuCount) {}
  static constexpr std::size_t kGpuCount = 8;
};

TEST_F(EnergyOfGenerations, AThousandWindowsOfEightGpusAreWithinHalfAPercent) {
  constexpr std::size_t kWindows = 1000;
  constexpr double kLimit = 0.005;
  std::mt19937_64 random(3);
  std::uniform_int_distribution<std::int64_t> pause_us(0, 730'000);
  std::array<double, kGpuCount> worst{};
  for (std::size_t i = 0; i < kWindows; ++i) {
    const auto gpu = i % kGpuCount;
    move_to(now_ + microseconds(pause_us(random)));
    const auto energy = window_of_a_second(gpu);
    ASSERT_EQ(energy.method, "counter") << energy.missing_reason;
    const double from = muster::seconds(last_begin_->time_since_epoch());
    const double truth =
        true_energy_(static_cast<unsigned>(gpu), from, from + energy.counted_seconds);
    const double error = std::abs(*energy.counted_joules - truth) / truth;
    EXPECT_LE(error, kLimit) << "GPU " << gpu << ", window " << i;
    EXPECT_LE(error * truth, *energy.error_joules + 0.002) << "GPU " << gpu << ", window " << i;
    worst[gpu] = std::max(worst[gpu], error);
  }
  RecordProperty("windows", static_cast<int>(kWindows));
  RecordProperty("worst_percent", std::to_string(*std::ranges::max_element(worst) * 100));
}

// A run in three phases, each of which ends where the next begins. An edge lies up to a refresh
// behind its boundary, so what a phase has too much its neighbour lacks. The power rises once and
// falls once, so the sum is off by a refresh at the highest power at most.
TEST_F(EnergyPhases, ThePhasesOfARunAddUpToItsTotalWithinARefresh) {
  constexpr int kRuns = 100;
  constexpr std::size_t kGpu = 4;
  constexpr double kRefreshJoules = 627.4 * 0.1;
  constexpr std::array kLasting{seconds(2), seconds(3), seconds(2)};
  std::mt19937_64 random(2);
  std::uniform_int_distribution<std::int64_t> offset_us(0, 99'999);
  double farthest = 0;
  for (int run = 1; run <= kRuns; ++run) {
    const auto begin = TimePoint(seconds(14 * run)) + microseconds(offset_us(random));
    move_to(begin);
    const auto first = next_edge(kGpu);
    auto boundary = begin;
    auto edge = first;
    double sum = 0;
    for (const auto lasting : kLasting) {
      const EnergyWindow phase(boundary, edge);
      const double from = muster::seconds(boundary.time_since_epoch());
      boundary += lasting;
      move_to(boundary);
      edge = next_edge(kGpu);
      const auto energy = phase.close(boundary, edge);
      ASSERT_EQ(energy.method, "counter") << energy.missing_reason;
      const double truth = true_energy_(kGpu, from, muster::seconds(boundary.time_since_epoch()));
      EXPECT_NEAR(*energy.joules, truth, kRefreshJoules) << "run " << run;
      sum += *energy.joules;
    }
    const auto total = EnergyWindow(begin, first).close(boundary, edge);
    ASSERT_EQ(total.method, "counter") << total.missing_reason;
    const double truth = true_energy_(kGpu, muster::seconds(begin.time_since_epoch()),
                                      muster::seconds(boundary.time_since_epoch()));
    EXPECT_NEAR(*total.joules, truth, kRefreshJoules) << "run " << run;
    EXPECT_NEAR(sum, *total.joules, kRefreshJoules) << "run " << run;
    farthest = std::max(farthest, std::abs(sum - *total.joules));
  }
  RecordProperty("runs", kRuns);
  RecordProperty("farthest_joules", std::to_string(farthest));
}

TEST_F(EnergyPhases, ACounterThatMayNotBeReadIsIntegratedAndSaysSo) {
  const auto energy = window_of_a_second(3);
  EXPECT_EQ(energy.method, "integrated");
  EXPECT_FALSE(energy.counter_missing_reason.empty());
  ASSERT_TRUE(energy.joules);
  EXPECT_NEAR(*energy.joules, 352.55, 0.5);  // half of the load, as below
}

TEST_F(EnergyPhases, AMissingCounterIsIntegratedAndSaysSo) {
  const auto energy = window_of_a_second(1);
  EXPECT_EQ(energy.method, "integrated");
  ASSERT_TRUE(energy.joules);
  // Half of the load: 77.7 + 0.5 * (627.4 - 77.7) = 352.55 W, for one second.
  EXPECT_NEAR(*energy.joules, 352.55, 0.5);
}

TEST_F(EnergyPhases, AResetIsFlaggedAndHasNoTotal) {
  move_to(TimePoint(milliseconds(4'999'500)));
  const auto energy = window_of_a_second(2);
  EXPECT_TRUE(energy.was_reset);
  EXPECT_EQ(energy.joules, std::nullopt);
  EXPECT_FALSE(energy.missing_reason.empty());
}

}  // namespace
}  // namespace muster
