// Speed of a device as the engine sees it: all lanes multiply at the same time, as they do under
// load, because they share caches, memory and clock. The best round counts, since everything that
// disturbs a round makes it longer. Two barriers keep the lanes together; between them only the
// product runs. The results are compared by the parent, so a worker cannot certify itself.

#include "worker/compute_product.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <utility>

#include "engine/encoder.h"
#include "engine/gpu.h"
#include "engine/product_bench.h"
#include "worker/pinning.h"

namespace muster {
namespace {

using SteadyTime = std::chrono::steady_clock;

constexpr std::uint32_t kRoundsLeast = 2;  // the first packs, allocates and raises the clock
constexpr std::uint32_t kRoundsMost = 1000;

// The thread's own time leaves out what others took of the core.
double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double seconds_since(SteadyTime::time_point begin) {
  return std::chrono::duration<double>(SteadyTime::now() - begin).count();
}

// Rounds of one product: every lane begins at the same time, and the round ends with the last.
class Rounds {
 public:
  Rounds(engine::ProductBench& bench, const ComputeTest& test, std::uint32_t lane_count)
      : bench_(bench),
        test_(test),
        lanes_(lane_count),
        start_(static_cast<std::ptrdiff_t>(lane_count)),
        finish_(static_cast<std::ptrdiff_t>(lane_count), OnFinish{this}) {}

  Status run() {
    begin_ = SteadyTime::now();
    {
      std::vector<std::jthread> threads;
      for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
        threads.emplace_back([this, lane] { run_lane(lane); });
      }
    }
    for (const auto& lane : lanes_) MUSTER_TRY(lane.outcome);
    return Done{};
  }

  ComputeMeasure measure() const {
    ComputeMeasure result{.round_seconds = best_seconds_,
                          .busy_seconds = best_busy_seconds_,
                          .rounds = round_count_,
                          .lane_count = static_cast<std::uint32_t>(lanes_.size()),
                          .images = {}};
    for (const auto& lane : lanes_) {
      result.images.insert(result.images.end(), lane.images.begin(), lane.images.end());
    }
    return result;
  }

 private:
  struct Lane {
    Status outcome = Done{};
    SteadyTime::time_point begin;
    double busy_seconds = 0;
    std::vector<double> images;
  };
  struct OnFinish {
    Rounds* rounds;
    void operator()() noexcept { rounds->end_round(); }
  };

  void run_lane(std::uint32_t index) {
    auto& lane = lanes_[index];
    const bool is_pinned = !test_.cpus.empty();
    if (is_pinned) pin_to(std::array{test_.cpus[index]});
    engine::enter_lane();
    while (!is_over_) {
      start_.arrive_and_wait();
      lane.begin = SteadyTime::now();
      const auto busy_before = thread_seconds();
      if (lane.outcome) lane.outcome = bench_.multiply(index);
      lane.busy_seconds = thread_seconds() - busy_before;
      finish_.arrive_and_wait();
    }
    if (!lane.outcome) return;
    auto images = bench_.images(index);
    if (images) {
      lane.images = *std::move(images);
    } else {
      lane.outcome = images.error();
    }
  }

  // By the last lane of a round, while the others wait.
  void end_round() {
    ++round_count_;
    auto begin = lanes_.front().begin;
    double busy = 0;
    bool has_failed = false;
    for (const auto& lane : lanes_) {
      begin = std::min(begin, lane.begin);
      busy += lane.busy_seconds / static_cast<double>(lanes_.size());
      has_failed |= !lane.outcome;
    }
    const auto took = seconds_since(begin);
    if (best_seconds_ == 0 || took < best_seconds_) {
      best_seconds_ = took;
      best_busy_seconds_ = test_.device == DeviceKind::Cpu ? busy : 0;
    }
    const bool has_time = seconds_since(begin_) * 1000 < test_.time_ms;
    is_over_ =
        has_failed || round_count_ >= kRoundsMost || (!has_time && round_count_ >= kRoundsLeast);
  }

  engine::ProductBench& bench_;
  const ComputeTest& test_;
  std::vector<Lane> lanes_;
  std::barrier<> start_;
  std::barrier<OnFinish> finish_;
  std::atomic<bool> is_over_ = false;
  SteadyTime::time_point begin_;
  double best_seconds_ = 0;
  double best_busy_seconds_ = 0;
  std::uint32_t round_count_ = 0;
};

}  // namespace

Result<ComputeResult> run_compute_test(const ComputeTest& test) {
  if (runs_as_gpu(test.device)) MUSTER_TRY(engine::open_gpu(test.device));
  const auto lane_count = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(test.cpus.size()));
  ComputeResult result;
  for (const auto precision : engine::precisions_to_try(test.device)) {
    const TestProduct product{.size = test.size, .seed = test.seed, .precision = precision};
    const auto bench = MUSTER_TRY(engine::ProductBench::load(product, test.device, lane_count));
    Rounds rounds(*bench, test, lane_count);
    MUSTER_TRY(rounds.run());
    auto measure = rounds.measure();
    measure.precision = precision;
    result.measures.push_back(std::move(measure));
  }
  return result;
}

}  // namespace muster
