// Items are claimed by taking one off `left_` and counted in `done_`. Work throws where memory is
// short; that must reach who has put it, and not while others still work.

#include "engine/ops/claimed_items.h"

#include <utility>

namespace muster::engine {

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The last store is sequentially consistent, as is what a sleeper does before it sleeps: either it
// sees the work, or who puts the work sees the sleeper.
void ClaimedItems::put(std::size_t count, Call call, void* work) {
  count_ = count;
  call_ = call;
  work_ = work;
  done_.store(0, std::memory_order_relaxed);
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const std::uint64_t begin = i * count / shares_.size();
    const std::uint64_t end = (i + 1) * count / shares_.size();
    shares_[i].bounds.store(end << 32U | begin, std::memory_order_relaxed);
  }
  left_.store(static_cast<std::uint32_t>(count));
}

bool ClaimedItems::do_one(std::size_t member) {
  auto left = left_.load(std::memory_order_acquire);
  do {
    if (left == 0 || left == kEnd) return false;
  } while (!left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel));
  // An item that throws is done as well: nobody would count it otherwise, and in a helper nobody
  // would catch it.
  try {
    call_(work_, pick(member), member);
  } catch (...) {
    keep_failure();
  }
  done_.fetch_add(1, std::memory_order_release);
  return true;
}

// There is an item for everyone who has taken one off `left_`.
std::size_t ClaimedItems::pick(std::size_t member) {
  for (std::size_t of = member;; ++of) {
    auto& bounds = shares_[of % shares_.size()].bounds;
    auto seen = bounds.load(std::memory_order_relaxed);
    for (;;) {
      const std::uint64_t begin = seen & 0xffffffffU;
      const std::uint64_t end = seen >> 32U;
      if (begin == end) break;
      const bool is_own = of == member;
      const std::uint64_t rest = is_own ? end << 32U | (begin + 1) : (end - 1) << 32U | begin;
      if (bounds.compare_exchange_weak(seen, rest, std::memory_order_relaxed)) {
        return is_own ? begin : end - 1;
      }
    }
  }
}

std::exception_ptr ClaimedItems::finish() {
  while (done_.load(std::memory_order_acquire) != count_) pause_briefly();
  if (failure_ == nullptr) return nullptr;
  has_failed_.clear();
  return std::exchange(failure_, nullptr);
}

void ClaimedItems::end() {
  left_.store(kEnd);
  left_.notify_all();
}

void ClaimedItems::keep_failure() {
  if (!has_failed_.test_and_set()) failure_ = std::current_exception();
}

}  // namespace muster::engine
