#include "bench/child/cancel_watch.h"

#include <chrono>
#include <utility>

namespace muster {
namespace {

constexpr auto kAskPeriod = std::chrono::milliseconds(100);  // a person does not notice it

}  // namespace

CancelWatch::CancelWatch(std::function<bool()> is_cancelled)
    : thread_([this, is_cancelled = std::move(is_cancelled)] {
        do {
          if (is_cancelled()) return cancelled_.raise();
        } while (over_.wait(kAskPeriod));
      }) {}

}  // namespace muster
