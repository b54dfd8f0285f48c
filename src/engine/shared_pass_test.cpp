// A pass that idle lanes share has the bits of one lane alone, whoever comes and however late.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/encoder.h"
#include "engine/encoder_fixture.h"
#include "engine/ops/lane_team.h"
#include "engine/ops/packed_linear.h"

namespace muster::engine {
namespace {

constexpr SharingLimits kEverything{.pass = 1, .share = 0};  // the models here are tiny

// Lanes that help from their start to the end of a test; number 0 is the test's own.
class Helpers {
 public:
  explicit Helpers(LaneTeam& team) : team_(team), calls_(team.call_count()) {
    for (std::size_t member = 1; member < team.size(); ++member) {
      threads_.emplace_back([this, member] {
        enter_lane();
        team_.help(member, calls_);
      });
    }
  }
  ~Helpers() {
    team_.call_all();
    for (auto& thread : threads_) thread.join();
  }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  void await_all() const {
    while (team_.idle_count() + 1 < team_.size()) std::this_thread::yield();
  }

 private:
  LaneTeam& team_;
  const std::uint32_t calls_;
  std::vector<std::thread> threads_;
};

// Texts of the lengths, one batch.
struct Texts {
  std::vector<std::uint32_t> lengths;
  std::vector<std::uint32_t> ids;

  Texts(std::vector<std::uint32_t> text_lengths, const EncoderSpec& encoder)
      : lengths(std::move(text_lengths)) {
    std::mt19937 generator(7);
    for (const auto length : lengths) {
      for (std::uint32_t i = 0; i < length; ++i) {
        ids.push_back(static_cast<std::uint32_t>(generator() % encoder.vocab_size));
      }
    }
  }

  std::vector<float> encode(const Encoder& encoder, LaneSeat& seat) const {
    std::vector<float> rows(lengths.size() * encoder.dim());
    const auto status = encoder.encode({ids, lengths}, rows, seat);
    EXPECT_TRUE(status) << status.error().message;
    return rows;
  }
};

bool has_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Of a lone query, one long text, texts of mixed lengths, and more than one pass holds.
std::vector<Texts> batches_for(const EncoderSpec& encoder) {
  const std::uint32_t most = std::min(300U, encoder.length_max());
  std::vector<std::uint32_t> mixed;
  for (std::uint32_t i = 0; i < 12; ++i) mixed.push_back(1 + (i * 37) % most);
  const std::vector<std::uint32_t> many(1 + 1300 / most, most);
  return {Texts({std::min(16U, most)}, encoder), Texts({most}, encoder), Texts(mixed, encoder),
          Texts(many, encoder), Texts({1}, encoder)};
}

TEST(ProductWork, FewRowsTakeAsLongAsEight) {
  EXPECT_EQ(product_work(1, 384, 1536), 8U * 384 * 1536);
  EXPECT_EQ(product_work(8, 384, 1536), 8U * 384 * 1536);
  EXPECT_EQ(product_work(9, 384, 1536), 9U * 384 * 1536);
}

class SharedPassTest : public testing::TestWithParam<std::tuple<std::string, Precision>> {
 protected:
  void SetUp() override {
    const auto& [name, precision] = GetParam();
    if (name == "minilm" && minilm_folder().empty()) {
      GTEST_SKIP() << "no all-MiniLM-L6-v2 (set MUSTER_MINILM)";
    }
    enter_lane();
    EncoderFixture fixture(name);
    fixture.options.precision = precision;
    auto loaded = Encoder::load(fixture.options);
    if (!loaded && loaded.error().kind == ErrorKind::Unsupported) {
      GTEST_SKIP() << loaded.error().message;
    }
    ASSERT_TRUE(loaded) << loaded.error().message;
    encoder_ = *std::move(loaded);
    batches_ = batches_for(fixture.options.encoder);
    LaneSeat alone;
    for (const auto& batch : batches_) expected_.push_back(batch.encode(*encoder_, alone));
  }

  void expect_the_bits_of_one_lane(LaneSeat& seat) {
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      EXPECT_TRUE(has_same_bits(batches_[i].encode(*encoder_, seat), expected_[i]))
          << "batch " << i;
    }
  }

  std::unique_ptr<Encoder> encoder_;
  std::vector<Texts> batches_;
  std::vector<std::vector<float>> expected_;
};

TEST_P(SharedPassTest, TwoOrThreeOrManyLanesGiveTheBitsOfOne) {
  for (const std::size_t lanes : {2U, 3U, 8U}) {
    SCOPED_TRACE(lanes);
    LaneTeam team(lanes, kEverything);
    const Helpers helpers(team);
    helpers.await_all();
    LaneSeat seat(team, 0);
    expect_the_bits_of_one_lane(seat);
  }
}

// As they are set for use: most batches here are too little to share.
TEST_P(SharedPassTest, WithTheLimitsOfUseTheBitsAreTheSame) {
  LaneTeam team(2);
  const Helpers helpers(team);
  helpers.await_all();
  LaneSeat seat(team, 0);
  expect_the_bits_of_one_lane(seat);
}

// Helpers come while a pass runs, before they are waited for by anybody, and leave in its middle.
TEST_P(SharedPassTest, HelpersThatComeLateAndLeaveEarlyChangeNoBit) {
  LaneTeam team(3, kEverything);
  std::atomic<bool> is_over{false};
  std::atomic<bool> have_left{false};
  std::vector<std::thread> lanes;
  for (std::size_t member = 1; member < 3; ++member) {
    lanes.emplace_back([&, member] {
      enter_lane();
      while (!is_over) {
        team.help(member, team.call_count());
        std::this_thread::yield();
      }
    });
  }
  std::thread caller([&] {
    while (!have_left) {
      team.call_all();
      std::this_thread::yield();
    }
  });
  LaneSeat seat(team, 0);
  for (int round = 0; round < 3; ++round) expect_the_bits_of_one_lane(seat);
  is_over = true;
  for (auto& lane : lanes) lane.join();
  have_left = true;
  caller.join();
}

// Two lanes compute different batches while a third helps either.
TEST_P(SharedPassTest, TwoPassesThatShareOneHelperKeepTheirBits) {
  LaneTeam team(3, kEverything);
  const auto calls = team.call_count();
  std::thread helper([&] {
    enter_lane();
    team.help(2, calls);
  });
  std::vector<std::thread> lanes;
  for (std::size_t lane = 0; lane < 2; ++lane) {
    lanes.emplace_back([&, lane] {
      enter_lane();
      LaneSeat seat(team, lane);
      expect_the_bits_of_one_lane(seat);
    });
  }
  for (auto& lane : lanes) lane.join();
  team.call_all();
  helper.join();
}

// Whoever is idle does get work: else all of the above would compare one lane with itself.
TEST_P(SharedPassTest, AnIdleLaneTakesPart) {
  LaneTeam team(2, kEverything);
  const Helpers helpers(team);
  helpers.await_all();
  LaneSeat seat(team, 0);
  std::chrono::nanoseconds helped{0};
  // A helper that the system keeps off its core misses a pass, but not for a minute.
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (helped.count() == 0 && std::chrono::steady_clock::now() < until) {
    for (const auto& batch : batches_) (void)batch.encode(*encoder_, seat);
    helped += seat.take_helped();
  }
  EXPECT_GT(helped.count(), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, SharedPassTest,
                         testing::Combine(testing::Values("minilm", "bert", "bert_odd", "mpnet"),
                                          testing::Values(Precision::Fp32, Precision::Bf16,
                                                          Precision::Int8)),
                         [](const auto& model) {
                           return std::get<0>(model.param) + "_" +
                                  std::string(precision_name(std::get<1>(model.param)));
                         });

}  // namespace
}  // namespace muster::engine
