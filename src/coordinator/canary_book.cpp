// Engines of one class answer a canary bit for bit alike, so one device's answer is checked by
// another's. The first answer is believed until a second device differs; then both restart and
// answer again, and the row with the most votes stays. Once two devices have agreed, or a dispute
// is over, a device that differs is wrong. A dispute has a limit, after which the answers that are
// there decide it.

#include "coordinator/canary_book.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster {
namespace {

// A worker links torch and loads a small model in a second or two; a large one from a cold disk
// takes longer, and then the dispute is decided without it.
constexpr Duration kDisputeLimit = std::chrono::seconds(60);
constexpr std::uint32_t kAnswersKept = 2;

// Bits, not values: a NaN equals itself, and 0 is not -0.
bool is_same(const std::vector<float>& left, const std::vector<float>& right) {
  return left.size() == right.size() &&
         std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

}  // namespace

CanaryBook::CanaryBook(std::map<std::string, std::vector<float>> kept) {
  for (auto& [name, row] : kept) {
    auto& entry = classes_[name];
    entry.row = std::move(row);
    entry.is_sure = true;
    entry.answer_count = kAnswersKept;
  }
}

std::vector<CanaryVerdict> CanaryBook::judge(std::size_t device, const std::string& engine_class,
                                             std::vector<float> row, TimePoint now) {
  auto& entry = classes_[engine_class];
  if (!entry.parties.empty()) return vote(entry, device, std::move(row));
  if (entry.row.empty()) {
    entry.row = std::move(row);
    entry.first_device = device;
    entry.answer_count = 1;
    return {{device, CanaryOutcome::Right}};
  }
  if (is_same(entry.row, row)) {
    entry.is_sure |= device != entry.first_device;
    if (entry.answer_count == 1) entry.answer_count = kAnswersKept;
    return {{device, CanaryOutcome::Right}};
  }
  if (entry.is_sure || device == entry.first_device) return {{device, CanaryOutcome::Wrong}};
  entry.votes = {{entry.first_device, std::move(entry.row)}, {device, std::move(row)}};
  entry.row.clear();
  entry.parties = {entry.first_device, device};
  entry.disputed_until = now + kDisputeLimit;
  return {{entry.first_device, CanaryOutcome::Restart}, {device, CanaryOutcome::Restart}};
}

std::vector<CanaryVerdict> CanaryBook::vote(Class& entry, std::size_t device,
                                            std::vector<float> row) {
  entry.waiting[device] = row;
  const bool is_shared = std::any_of(
      entry.votes.begin(), entry.votes.end(),
      [&](const Vote& other) { return other.device != device && is_same(other.row, row); });
  entry.votes.push_back({device, std::move(row)});
  if (is_shared) {
    // Two devices agree: that row goes before all others.
    entry.votes = {entry.votes.back()};
    auto verdicts = decide(entry);
    entry.answer_count = kAnswersKept;
    return verdicts;
  }
  const bool have_all_answered =
      std::all_of(entry.parties.begin(), entry.parties.end(),
                  [&](std::size_t party) { return entry.waiting.count(party) > 0; });
  return have_all_answered ? decide(entry) : std::vector<CanaryVerdict>{};
}

std::vector<CanaryVerdict> CanaryBook::decide(Class& entry) {
  const auto votes_for = [&](const Vote& vote) {
    return std::count_if(entry.votes.begin(), entry.votes.end(),
                         [&](const Vote& other) { return is_same(other.row, vote.row); });
  };
  // Of rows with as many votes the first one stays: max_element returns the first of equals.
  const auto best = std::max_element(
      entry.votes.begin(), entry.votes.end(),
      [&](const Vote& left, const Vote& right) { return votes_for(left) < votes_for(right); });
  entry.answer_count = 0;
  entry.row = best->row;
  entry.first_device = best->device;
  std::vector<CanaryVerdict> verdicts;
  for (const auto& [device, row] : entry.waiting) {
    verdicts.push_back(
        {device, is_same(row, entry.row) ? CanaryOutcome::Right : CanaryOutcome::Wrong});
  }
  // From now on a difference is a lie: this was looked into once.
  entry.is_sure = true;
  entry.votes.clear();
  entry.parties.clear();
  entry.waiting.clear();
  return verdicts;
}

// A party that does not come back must not keep the others waiting.
std::vector<CanaryVerdict> CanaryBook::on_time(TimePoint now) {
  std::vector<CanaryVerdict> verdicts;
  for (auto& [name, entry] : classes_) {
    if (entry.parties.empty() || now < entry.disputed_until) continue;
    const auto decided = decide(entry);
    verdicts.insert(verdicts.end(), decided.begin(), decided.end());
  }
  return verdicts;
}

std::optional<TimePoint> CanaryBook::deadline() const {
  std::optional<TimePoint> deadline;
  for (const auto& [name, entry] : classes_) {
    if (entry.parties.empty()) continue;
    deadline = std::min(deadline.value_or(entry.disputed_until), entry.disputed_until);
  }
  return deadline;
}

// A row that was seen once is not kept: a lie that is written down would outlive the device that
// told it.
std::map<std::string, std::vector<float>> CanaryBook::rows() const {
  std::map<std::string, std::vector<float>> rows;
  for (const auto& [name, entry] : classes_) {
    if (entry.answer_count >= kAnswersKept) rows.emplace(name, entry.row);
  }
  return rows;
}

}  // namespace muster
