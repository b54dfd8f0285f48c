// Finding when a counter changes by looking at it each millisecond. The true moment lies between
// the beginning of the last look with the old value and the end of the first with the new; half
// of that span is the error. Each device has a thread of its own, and a thread that hangs in a
// driver is left alone until it comes back.

#include "telemetry/edge_search.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {
namespace {

constexpr Duration kBetweenLooks = std::chrono::milliseconds(1);
// A search may take so much longer than asked: on a busy machine its threads wait for a core.
constexpr Duration kGrace = std::chrono::milliseconds(250);
// That of a CPU, whose files seldom hang, so that it has its visit on the busiest machine.
constexpr Duration kCpuGrace = std::chrono::seconds(5);
// And a thread so much longer to tell what it found.
constexpr Duration kReturn = std::chrono::milliseconds(20);
constexpr const char* kNoCounter = "there is no energy counter that can be read";

EdgeFound missing(std::uint32_t device, std::string reason) {
  return {device, std::nullopt, 0, {}, std::move(reason)};
}

std::int64_t in_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace

std::optional<EdgeFound> EdgeDetector::look(TimePoint before, double joules, TimePoint after) {
  if (old_ && joules != *old_) {
    // It changed after the last call that gave the old value began, and before this one ended.
    const auto half = (after - old_before_) / 2;
    return EdgeFound{0, old_before_ + half, joules, half, ""};
  }
  old_ = joules;
  old_before_ = before;
  return std::nullopt;
}

EdgeSearch::~EdgeSearch() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  looks_.clear();  // joins
}

bool EdgeSearch::pause(TimePoint until) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_until(lock, until, [this] { return is_stopping_; });
}

// The limit counts from the first look: a thread that came late has all of it, too, up to `latest`.
EdgeFound EdgeSearch::look(const EdgeCounter& counter, Duration limit, TimePoint latest) {
  if (counter.visit && !counter.visit()) return missing(counter.device, kNoCounter);
  const auto whole = clock_.now() + limit;
  const auto deadline = std::min(whole, latest);
  EdgeDetector detector;
  for (;;) {
    std::unique_lock use(*counter.in_use, std::defer_lock);
    if (!use.try_lock_until(deadline)) return missing(counter.device, "the driver is in a call");
    const auto before = clock_.now();
    const auto joules = counter.sampler->energy_joules(*counter.watch);
    const auto after = clock_.now();
    use.unlock();
    if (!joules) return missing(counter.device, kNoCounter);
    if (auto found = detector.look(before, *joules, after)) {
      found->device = counter.device;
      return *found;
    }
    if (after >= deadline || !pause(std::min(deadline, after + kBetweenLooks))) break;
  }
  return missing(counter.device, deadline < whole
                                     ? "the machine was too busy to watch the energy counter"
                                     : "the energy counter stood still");
}

// Of the thread that holds mutex_.
void EdgeSearch::begin_look(const EdgeCounter& counter, Duration limit,
                            const std::shared_ptr<Round>& round) {
  const auto grace = counter.visit ? kCpuGrace : kGrace;
  const auto latest = clock_.now() + limit + grace;
  round->found.push_back(missing(
      counter.device, fmt::format("there was no answer within {} ms", in_ms(limit + grace))));
  round->open_until.emplace_back();
  // One that still hangs from an earlier search gets no second thread.
  if (std::ranges::find(looks_, counter.device, &Look::device) != looks_.end()) {
    round->found.back().missing_reason = "a call of an earlier search has not come back";
    return;
  }
  round->open_until.back() = latest + kReturn;
  auto& look = looks_.emplace_back();
  look.device = counter.device;
  look.thread =
      std::jthread([this, counter, limit, latest, round, &look, at = round->found.size() - 1] {
        auto found = this->look(counter, limit, latest);
        const std::lock_guard lock(mutex_);
        round->found[at] = std::move(found);
        round->open_until[at] = {};
        look.has_ended = true;
        changed_.notify_all();
      });
}

std::vector<EdgeFound> EdgeSearch::find(const std::vector<EdgeCounter>& counters, Duration limit) {
  const auto round = std::make_shared<Round>();
  std::unique_lock lock(mutex_);
  looks_.remove_if([](const Look& look) { return look.has_ended; });
  for (const auto& counter : counters) begin_look(counter, limit, round);
  while (!round->found.empty() && !is_stopping_) {
    const auto until = *std::ranges::max_element(round->open_until);
    if (until <= clock_.now()) break;
    changed_.wait_until(lock, until);
  }
  return round->found;
}

}  // namespace muster
