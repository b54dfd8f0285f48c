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
// And a thread so much longer to tell what it found.
constexpr Duration kReturn = std::chrono::milliseconds(20);

EdgeFound missing(std::uint32_t device, std::string reason) {
  return {device, std::nullopt, 0, {}, std::move(reason)};
}

std::int64_t in_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace

EdgeFound no_counter(std::uint32_t device) { return missing(device, "there is no energy counter"); }

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

// The limit counts from the first look: a thread that came late has all of it, too.
EdgeFound EdgeSearch::look(const EdgeCounter& counter, Duration limit, TimePoint latest) {
  const auto deadline = std::min(clock_.now() + limit, latest);
  EdgeDetector detector;
  for (;;) {
    std::unique_lock use(*counter.in_use, std::defer_lock);
    if (!use.try_lock_until(deadline)) return missing(counter.device, "the driver is in a call");
    const auto before = clock_.now();
    const auto joules = counter.sampler->energy_joules(*counter.watch);
    const auto after = clock_.now();
    use.unlock();
    if (!joules) return no_counter(counter.device);
    if (auto found = detector.look(before, *joules, after)) {
      found->device = counter.device;
      return *found;
    }
    if (after >= deadline || !pause(std::min(deadline, after + kBetweenLooks))) break;
  }
  return missing(counter.device, "the energy counter stood still");
}

std::vector<EdgeFound> EdgeSearch::find(const std::vector<EdgeCounter>& counters, Duration limit) {
  const auto latest = clock_.now() + limit + kGrace;
  const auto round = std::make_shared<Round>();
  std::unique_lock lock(mutex_);
  looks_.remove_if([](const Look& look) { return look.has_ended; });
  for (const auto& counter : counters) {
    round->found.push_back(
        missing(counter.device,
                fmt::format("the driver did not answer within {} ms", in_ms(limit + kGrace))));
    // One that still hangs from an earlier search gets no second thread.
    if (std::ranges::find(looks_, counter.device, &Look::device) != looks_.end()) continue;
    ++round->open;
    auto& look = looks_.emplace_back();
    look.device = counter.device;
    look.thread =
        std::jthread([this, counter, limit, latest, round, &look, at = round->found.size() - 1] {
          auto found = this->look(counter, limit, latest);
          const std::lock_guard relock(mutex_);
          round->found[at] = std::move(found);
          --round->open;
          look.has_ended = true;
          changed_.notify_all();
        });
  }
  changed_.wait_until(lock, latest + kReturn, [&] { return round->open == 0 || is_stopping_; });
  return round->found;
}

}  // namespace muster
