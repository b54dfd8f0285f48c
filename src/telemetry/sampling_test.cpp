#include "telemetry/sampling.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::array<Duration, kTierCount> kPeriods{milliseconds(20), milliseconds(200),
                                                    milliseconds(2000)};
constexpr Duration kPatience = seconds(15);  // for a machine that is busy with other tests

/// A device whose driver can be held in a call.
class FakeDevice final : public DeviceSampler {
 public:
  FakeDevice() { identity_.device.kind = DeviceKind::Cuda; }
  void become_cpu() { identity_.device.kind = DeviceKind::Cpu; }

  const DeviceIdentity& identity() const override { return identity_; }

  void sample(TierSet /*due*/, CallWatch& watch, DeviceSample& sample) override {
    watch.enter("fakeSample", SteadyClock().now());
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !is_held_; });
      changed_.wait_for(lock, visit_time_, [] { return false; });
      if (is_lost_) sample.lost_reason = "lost";
      ++visits_;
    }
    watch.leave("fakeSample", 0, Duration(1000));
    if (!sample.lost_reason) sample.readings.set(Reading::GpuPowerInstant, 1);
  }

  std::optional<double> energy_joules(CallWatch& /*watch*/) override {
    const std::lock_guard lock(mutex_);
    if (!has_counter_) return std::nullopt;
    return static_cast<double>(looks_++ / 5);  // a new value with every fifth look
  }

  void hold(bool is_held) {
    {
      const std::lock_guard lock(mutex_);
      is_held_ = is_held;
    }
    changed_.notify_all();
  }
  void take_so_long(Duration visit_time) {
    const std::lock_guard lock(mutex_);
    visit_time_ = visit_time;
  }
  void lose() {
    const std::lock_guard lock(mutex_);
    is_lost_ = true;
  }
  void remove_counter() {
    const std::lock_guard lock(mutex_);
    has_counter_ = false;
  }
  int visits() {
    const std::lock_guard lock(mutex_);
    return visits_;
  }

 private:
  DeviceIdentity identity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_held_ = false;
  Duration visit_time_{};
  bool is_lost_ = false;
  bool has_counter_ = true;
  int visits_ = 0;
  int looks_ = 0;
};

/// Three devices that are visited, and what was given away.
class SamplingTest : public testing::Test, public SampleSink {
 protected:
  SamplingTest() : page_(std::move(*CallPage::create())) {}

  // Before the destructor begins: the visiting threads call this object.
  void TearDown() override { sampling_.reset(); }

  void begin(const std::array<Duration, kTierCount>& periods = kPeriods) {
    sampling_ = std::make_unique<Sampling>(
        std::vector<DeviceSampler*>{&devices_[0], &devices_[1], &devices_[2]}, periods, page_,
        clock_, *this);
  }

  void take(const DeviceSample& sample) override {
    const std::lock_guard lock(mutex_);
    // Whoever sums up a counter relies on it.
    EXPECT_LT(std::exchange(newest_[sample.device], sample.at), sample.at);
    ++counts_[sample.device];
    ++round_size_;
    changed_.notify_all();
  }
  void end_round() override {
    const std::lock_guard lock(mutex_);
    round_sizes_.push_back(std::exchange(round_size_, 0));
    changed_.notify_all();
  }

  // Waits until each of these devices has given so many samples more.
  bool wait_for(const std::vector<std::uint32_t>& devices, int more) {
    std::unique_lock lock(mutex_);
    auto goal = counts_;
    for (const auto device : devices) goal[device] += more;
    return changed_.wait_for(lock, kPatience, [&] {
      for (const auto device : devices) {
        if (counts_[device] < goal[device]) return false;
      }
      return true;
    });
  }

  // Also where the first round is over before this is called.
  bool wait_for_first_of_each() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience,
                             [&] { return counts_[0] > 0 && counts_[1] > 0 && counts_[2] > 0; });
  }

  int count(std::uint32_t device) {
    const std::lock_guard lock(mutex_);
    return counts_[device];
  }

  const SteadyClock clock_;
  CallPage page_;
  std::array<FakeDevice, 3> devices_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint32_t, int> counts_;
  std::map<std::uint32_t, TimePoint> newest_;
  std::size_t round_size_ = 0;
  std::vector<std::size_t> round_sizes_;
  std::unique_ptr<Sampling> sampling_;  // last: its threads use the others
};

// What is slow for a quarter of the fast period leaves the round, so that is long here.
TEST_F(SamplingTest, HealthyDevicesShareARound) {
  begin({seconds(4), seconds(8), seconds(16)});
  std::unique_lock lock(mutex_);
  ASSERT_TRUE(changed_.wait_for(lock, kPatience, [this] { return !round_sizes_.empty(); }));
  EXPECT_EQ(round_sizes_.front(), 3U);
}

TEST_F(SamplingTest, TheOthersGoOnWhileOneHangsAndItComesBack) {
  begin();
  ASSERT_TRUE(wait_for({0, 1, 2}, 1));
  devices_[1].hold(true);
  EXPECT_TRUE(wait_for({0, 2}, 10));
  const auto call = page_.in_progress(1);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->function, "fakeSample");
  const int held_at = count(1);
  EXPECT_TRUE(wait_for({0, 2}, 5));
  EXPECT_EQ(count(1), held_at);
  EXPECT_GT(sampling_->ticks()[0].missed, 0U);
  devices_[1].hold(false);
  EXPECT_TRUE(wait_for({0, 1, 2}, 3));
}

TEST_F(SamplingTest, TwoThatHangLeaveTheThirdAlone) {
  begin();
  ASSERT_TRUE(wait_for({0, 1, 2}, 1));
  devices_[0].hold(true);
  devices_[2].hold(true);
  EXPECT_TRUE(wait_for({1}, 10));
  devices_[0].hold(false);
  EXPECT_TRUE(wait_for({0, 1}, 3));
  devices_[2].hold(false);
  EXPECT_TRUE(wait_for({2}, 3));
}

TEST_F(SamplingTest, ALostDeviceIsVisitedWithTheMediumTierOnly) {
  devices_[2].lose();
  const auto begun_at = clock_.now();
  begin();
  ASSERT_TRUE(wait_for({0, 1}, 40));
  // The first visit is on top, and one more may be under way.
  const auto medium_ticks = (clock_.now() - begun_at) / kPeriods[1];
  EXPECT_LE(devices_[2].visits(), medium_ticks + 3);
  EXPECT_GE(devices_[0].visits(), 40);
}

TEST_F(SamplingTest, EdgesAreFoundBesideADriverThatHangs) {
  devices_[1].remove_counter();
  begin();
  ASSERT_TRUE(wait_for({0, 1, 2}, 1));
  devices_[2].hold(true);
  ASSERT_TRUE(wait_for({0, 1}, 5));
  const auto edges = sampling_->find_edges(seconds(3));
  ASSERT_EQ(edges.size(), 3U);
  ASSERT_TRUE(edges[0].at) << edges[0].missing_reason;
  EXPECT_EQ(edges[0].joules, 1);
  EXPECT_EQ(edges[1].missing_reason, "there is no energy counter that can be read");
  EXPECT_FALSE(edges[2].at);
  EXPECT_FALSE(edges[2].missing_reason.empty());
  devices_[2].hold(false);
}

TEST_F(SamplingTest, ACpuIsVisitedBeforeItsEdgeIsSought) {
  devices_[1].become_cpu();
  devices_[1].remove_counter();
  begin({milliseconds(20), std::chrono::hours(1), std::chrono::hours(1)});
  ASSERT_TRUE(wait_for_first_of_each());
  // By itself it is visited again in half an hour.
  ASSERT_EQ(count(1), 1);
  for (const int visits : {2, 3}) {
    sampling_->find_edges(milliseconds(500));
    EXPECT_EQ(count(1), visits);
  }
  ASSERT_TRUE(wait_for({0}, 3));
  EXPECT_EQ(count(1), 3);
}

// On a machine that is busy the visit of a CPU takes longer than a search may.
TEST_F(SamplingTest, ACpuWithoutACounterSaysSoHoweverLongItsVisitTakes) {
  devices_[1].become_cpu();
  devices_[1].remove_counter();
  begin({milliseconds(20), std::chrono::hours(1), std::chrono::hours(1)});
  ASSERT_TRUE(wait_for_first_of_each());
  devices_[1].take_so_long(milliseconds(400));
  const auto edges = sampling_->find_edges(milliseconds(1));
  ASSERT_EQ(edges.size(), 3U);
  EXPECT_EQ(edges[1].device, 1U);
  EXPECT_EQ(edges[1].missing_reason, "there is no energy counter that can be read");
  EXPECT_EQ(count(1), 2);
}

TEST_F(SamplingTest, SamplesOfACpuComeInTheOrderOfTheirVisits) {
  devices_[1].become_cpu();
  begin({milliseconds(1), milliseconds(2), milliseconds(4)});
  for (int i = 0; i < 200; ++i) sampling_->find_edges(milliseconds(1));
  EXPECT_GT(count(1), 1);
}

TEST_F(SamplingTest, TheEdgeOfACpuIsFoundToo) {
  devices_[1].become_cpu();
  begin();
  const auto edges = sampling_->find_edges(seconds(3));
  ASSERT_EQ(edges.size(), 3U);
  ASSERT_TRUE(edges[1].at) << edges[1].missing_reason;
  EXPECT_EQ(edges[1].joules, 1);
}

TEST_F(SamplingTest, CallsAreCountedByName) {
  begin();
  ASSERT_TRUE(wait_for({0, 1, 2}, 2));
  std::map<std::string, CallCost> costs;
  sampling_->add_costs_to(costs);
  ASSERT_TRUE(costs.contains("fakeSample"));
  EXPECT_GE(costs["fakeSample"].calls, 6U);
  // Each was told to have taken a microsecond.
  EXPECT_NEAR(costs["fakeSample"].seconds, 1e-6 * static_cast<double>(costs["fakeSample"].calls),
              1e-12);
}

}  // namespace
}  // namespace muster
