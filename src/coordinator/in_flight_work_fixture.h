#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/fleet_fixture.h"
#include "coordinator/in_flight_work.h"

namespace muster {

/// The work in flight alone, for tests: groups are fakes, and what they answer is the test's. Two
/// groups, one lane each.
class InFlightWorkTest : public testing::Test {
 protected:
  static constexpr ModelId kModel = 5;
  static constexpr std::uint32_t kDim = 2;
  static inline const Error kTold{ErrorKind::Internal, "told to fail"};

  InFlightWorkTest()
      : groups_(2, clock_),
        models_(2),
        events_{.on_row =
                    [this](ItemKey key, std::span<const std::byte> row, std::size_t group) {
                      std::memcpy(&rows_[key], row.data(), sizeof(float));
                      row_groups_.emplace_back(key, group);
                    },
                .on_item_failed = [this](ItemKey key,
                                         const Error& error) { failed_.emplace(key, error); },
                .on_notice = {},
                .on_change = {}},
        work_({.group_count = 2, .batch_tokens = 100, .weights = {}, .dispatch = {}},
              {.groups = groups_,
               .models = models_,
               .events = events_,
               .signal = signal_,
               .clock = clock_,
               .ask_canary = [this](std::size_t group, ModelId) { asked_.push_back(group); },
               .on_notice = [](std::size_t, const std::string&) {}}) {
    serve(kModel, {0, 1});
  }

  void serve(ModelId model, const std::vector<std::size_t>& where, bool has_canary = true) {
    models_.add(model, has_canary);
    for (const auto group : where) {
      models_.on(group)[model].status = {.state = ModelState::Ready, .reason = {}, .dim = kDim};
      work_.update_group(group);
    }
  }

  /// Texts of forty tokens whose first id is their key: each has a batch of its own, because a
  /// batch takes an even share of what waits, or 64 tokens (scheduler/batch_queue.cpp).
  void submit(std::initializer_list<ItemKey> keys, ModelId model = kModel) {
    for (const auto key : keys) submit_one(key, model, 40);
    work_.feed();
  }

  /// Texts 1 to `count` of ten tokens: six of them make a batch.
  void submit_short(ItemKey count) {
    for (ItemKey key = 1; key <= count; ++key) submit_one(key, kModel, 10);
    work_.feed();
  }

  void submit_one(ItemKey key, ModelId model, std::uint32_t token_count) {
    std::vector<std::uint32_t> ids(token_count, 0);
    ids[0] = static_cast<std::uint32_t>(key);
    work_.submit(
        {.item = {.key = key, .model = model, .token_count = token_count}, .ids = std::move(ids)});
  }

  static std::vector<ItemKey> keys_from(ItemKey first, ItemKey last) {
    std::vector<ItemKey> keys;
    for (auto key = first; key <= last; ++key) keys.push_back(key);
    return keys;
  }

  /// The keys of the texts that the group's oldest frame asks for.
  std::vector<ItemKey> running(std::size_t group) const {
    if (groups_.sent(group).empty()) return {};
    return keys_of(groups_.sent(group).all().front().id);
  }
  std::vector<ItemKey> keys_of(std::uint64_t id) const {
    const auto& sent = *std::find_if(groups_.frames.begin(), groups_.frames.end(),
                                     [id](const auto& one) { return one.frame.id == id; });
    std::vector<ItemKey> keys;
    std::size_t at = 0;
    for (const auto length : sent.batch.lengths) {
      keys.push_back(sent.batch.ids.at(at));
      at += length;
    }
    return keys;
  }

  /// The group answers its oldest frame: [key, 0] for each text, but no number for `bad` ones.
  void answer(std::size_t group, const std::vector<ItemKey>& bad = {}) {
    const auto frame = groups_.sent(group).all().front();
    std::vector<float> rows;
    for (const auto key : keys_of(frame.id)) {
      const bool is_bad = std::find(bad.begin(), bad.end(), key) != bad.end();
      rows.push_back(is_bad ? std::numeric_limits<float>::infinity() : static_cast<float>(key));
      rows.push_back(0);
    }
    groups_.sent_of(group).take(frame.id, clock_.now());
    work_.on_rows(group, frame.id,
                  {.engine_ns = 1'000'000, .dim = kDim, .rows = std::as_bytes(std::span(rows))});
    work_.feed();
  }
  void answer_all() {
    for (int turns = 0; turns < 100 && work_.pending_count() > 0; ++turns) {
      for (const auto group : {0U, 1U}) {
        if (!groups_.sent(group).empty()) answer(group);
      }
    }
  }

  /// The group fails at its oldest frame.
  void fail(std::size_t group, const Error& error = kTold) {
    const auto id = groups_.sent(group).all().front().id;
    groups_.sent_of(group).take(id, clock_.now());
    work_.on_failed(group, id, error);
  }
  /// Its canary was right, and work goes on.
  void acquit(std::size_t group) {
    EXPECT_TRUE(work_.acquit(group, kModel));
    work_.feed();
  }

  /// The group ends with all that it has, and starts again.
  void lose(std::size_t group, WorkerEnd end) {
    auto& sent = groups_.sent_of(group);
    const GroupLoss loss{.end = end, .reason = "it ended", .running = sent.running()};
    sent.clear();
    auto& life = groups_.life_of(group);
    life.end_by = clock_.now();
    work_.on_ended(group);
    work_.update_group(group);
    work_.on_lost(group, loss);
    life.end_by.reset();
    life.is_quarantined = false;
    ++life.serial;
    groups_.convicted.erase(group);
    work_.update_group(group);
    work_.feed();
  }

  void rest(std::size_t group, bool is_to_rest) {
    groups_.life_of(group).goal = is_to_rest ? GroupGoal::Drain : GroupGoal::Serve;
    work_.update_group(group);
  }

  GroupStatus status(std::size_t group) const {
    GroupStatus status;
    work_.describe(group, status);
    return status;
  }
  void expect_rows(const std::vector<ItemKey>& keys) {
    EXPECT_EQ(rows_.size(), keys.size());
    EXPECT_EQ(row_groups_.size(), keys.size()) << "each once";
    for (const auto key : keys) EXPECT_EQ(rows_.at(key), static_cast<float>(key));
  }

  HandClock clock_;
  StepSignal signal_;
  FakeWorkerGroups groups_;
  ModelTable models_;
  FleetEvents events_;
  std::map<ItemKey, float> rows_;
  std::vector<std::pair<ItemKey, std::size_t>> row_groups_;
  std::map<ItemKey, Error> failed_;
  std::vector<std::size_t> asked_;
  InFlightWork work_;
};

}  // namespace muster
