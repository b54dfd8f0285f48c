#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/fleet.h"

namespace muster {

/// Real processes that fall ill (stand_ins/faulty_worker), under a load that never ends, driven as
/// a server drives them: by `wait_fd` and `next_deadline`.
class FleetFaultsTest : public testing::Test {
 protected:
  using Row = std::vector<float>;

  static constexpr ModelId kModel = 7;
  static constexpr ItemKey kTextCount = 200;
  static constexpr Duration kPatience = std::chrono::seconds(60);
  static constexpr std::size_t kLoad = 64;  // texts that are kept in a fleet

  ~FleetFaultsTest() override {
    fleet_.reset();
    ::unsetenv("FAULTY_WORKER");
    std::filesystem::remove(state_file_);
  }

  void SetUp() override {
    state_file_ = testing::TempDir() + "muster-faults-" + std::to_string(::getpid());
    std::filesystem::remove(state_file_);
  }

  /// faults: what stands at FAULTY_WORKER; @ becomes the state file.
  void start(std::string faults, std::size_t device_count = 2, FleetModel model = canary_model());

  static FleetModel canary_model() {
    FleetModel model;
    model.canary = {11, 12, 13, 14};
    return model;
  }

  void on_row(ItemKey key, std::span<const std::byte> bytes, std::size_t device) {
    EXPECT_EQ(waiting_.erase(key), 1U) << "a text that nobody waits for: " << key;
    Row row(bytes.size() / sizeof(float));
    std::memcpy(row.data(), bytes.data(), bytes.size());
    // Whoever computes it, a text has one row.
    if (device != liar_) {
      EXPECT_EQ(rows_.emplace(key % kTextCount, row).first->second, row) << key;
    }
    ++row_count_;
    by_device_[device] += 1;
  }

  static std::vector<std::uint32_t> ids_of(ItemKey key) {
    const auto text = key % kTextCount;
    std::vector<std::uint32_t> ids(3 + text % 5, 1);
    ids[0] = static_cast<std::uint32_t>(1000 + text);
    return ids;
  }

  ItemKey submit(ItemKey key, ModelId model = kModel) {
    auto ids = ids_of(key);
    FleetItem item{.item = {.key = key, .model = model}, .ids = std::move(ids)};
    item.item.token_count = static_cast<std::uint32_t>(item.ids.size());
    waiting_.insert(key);
    fleet_->texts().submit(std::move(item));
    return key;
  }

  /// A device whose faults name ill_file is ill from here on, and until here.
  void fall_ill() const { std::ofstream(state_file_).flush(); }
  void recover() const { std::filesystem::remove(state_file_); }

  /// The process that keeps a worker in its exit (unkillable_s); 0: there is no tracing here.
  static pid_t tracer_of(pid_t pid) {
    std::ifstream status(fmt::format("/proc/{}/status", pid));
    const std::string text((std::istreambuf_iterator<char>(status)), {});
    const std::string word = "TracerPid:\t";
    return std::stoi(text.substr(text.find(word) + word.size()));
  }

  /// What a server's loop does once.
  void turn() {
    const auto left = std::clamp<Duration>(fleet_->loop().next_deadline() - clock_.now(),
                                           Duration{0}, std::chrono::milliseconds(1000));
    pollfd waiting{fleet_->loop().wait_fd(), POLLIN, 0};
    ::poll(&waiting, 1,
           static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    const auto stepped = fleet_->loop().step(Duration{0});
    ASSERT_TRUE(stepped) << stepped.error().message;
  }

  void fill(std::size_t load) {
    while (waiting_.size() < load) submit(next_key_++);
  }

  /// Keeps `load` texts in until `is_done`.
  void run_until(const std::function<bool()>& is_done, std::size_t load = kLoad) {
    const auto begin = clock_.now();
    while (!is_done()) {
      ASSERT_LT(clock_.now() - begin, kPatience) << notices_ << states();
      fill(load);
      ASSERT_NO_FATAL_FAILURE(turn());
    }
  }

  void finish() {
    run_until([this] { return waiting_.empty(); }, 0);
    EXPECT_EQ(fleet_->texts().pending_count(), 0U);
  }

  GroupStatus device(std::size_t index) const { return fleet_->groups()[index]; }
  bool is(std::size_t index, GroupState state) const { return device(index).state == state; }
  bool are_ready() const {
    const auto all = fleet_->groups();
    return std::all_of(all.begin(), all.end(),
                       [](const auto& one) { return one.state == GroupState::Ready; });
  }
  std::string states() const {
    std::string text;
    for (const auto& one : fleet_->groups()) {
      text += fmt::format("{} {} {}\n", one.name, group_state_name(one.state), one.reason);
    }
    return text;
  }
  void submit_all() {
    for (ItemKey key = 0; key < kTextCount; ++key) submit(key);
  }
  /// All texts have come back right, and nothing is left in the books.
  void expect_nothing_lost() {
    finish();
    EXPECT_TRUE(failed_.empty()) << failed_.begin()->second.message;
    for (std::size_t i = 0; i < fleet_->groups().size(); ++i) {
      EXPECT_EQ(fleet_->placement().dispatcher().in_flight_token_count(i), 0U) << i;
    }
  }
  auto rows_since(std::uint64_t count) {
    return [this, end = row_count_ + count] { return row_count_ >= end; };
  }

  bool gives_up_ = false;
  Duration canary_period_ = std::chrono::milliseconds(100);
  const SteadyClock clock_{};
  std::string state_file_;
  std::unique_ptr<Fleet> fleet_;
  ItemKey next_key_ = 0;
  std::set<ItemKey> waiting_;
  std::map<ItemKey, Row> rows_;  // by text
  std::map<ItemKey, Error> failed_;
  std::map<std::size_t, std::uint64_t> by_device_;
  std::uint64_t row_count_ = 0;
  std::size_t liar_ = SIZE_MAX;  // its rows are not looked at
  std::string notices_;
};

}  // namespace muster
