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
    call_(work_, count_ - left, member);
  } catch (...) {
    keep_failure();
  }
  done_.fetch_add(1, std::memory_order_release);
  return true;
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
