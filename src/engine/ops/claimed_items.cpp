// Items are claimed from a share's bounds, from its front by its member and from its back by
// others, and counted as done by who did them. Work throws where memory is short; that must reach
// who has put it, and not while others still work.

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

namespace {

constexpr unsigned kEndShift = 32;

std::uint64_t bounds_of(std::uint64_t begin, std::uint64_t end) { return end << kEndShift | begin; }
std::uint64_t begin_of(std::uint64_t bounds) { return bounds & 0xffffffffU; }
std::uint64_t end_of(std::uint64_t bounds) { return bounds >> kEndShift; }

}  // namespace

// What an item needs is there before its share shows it. The fence stands against what a sleeper
// does before it sleeps, which is sequentially consistent: either it sees the work, or who puts the
// work sees the sleeper.
void ClaimedItems::put(std::size_t count, std::size_t share_count, Call call, void* work) {
  put_items_ += static_cast<std::uint32_t>(count);
  if (share_count_.load(std::memory_order_relaxed) != share_count) {
    share_count_.store(share_count, std::memory_order_relaxed);
  }
  // The last share first: the first is mostly that of the thread that puts them, so a helper that
  // looks meanwhile finds its own before that one.
  for (std::size_t i = share_count; i-- > 0;) {
    auto& share = shares_[i];
    share.call = call;
    share.work = work;
    share.bounds.store(
        bounds_of(share_begin(i, share_count, count), share_begin(i + 1, share_count, count)),
        std::memory_order_release);
  }
  puts_.store(puts_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool ClaimedItems::do_one(std::size_t member) {
  std::size_t index = 0;
  const auto* share = claim(member, index);
  if (share == nullptr) return false;
  // An item that throws is done as well: nobody would count it otherwise, and in a helper nobody
  // would catch it.
  try {
    share->call(share->work, index, member);
  } catch (...) {
    keep_failure();
  }
  shares_[member].done.fetch_add(1, std::memory_order_release);
  return true;
}

// A count of shares that is out of date leaves some out, or meets some that are empty.
const ClaimedItems::Share* ClaimedItems::claim(std::size_t member, std::size_t& index) {
  const auto share_count = share_count_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < share_count; ++i) {
    auto& share = shares_[(member + i) % share_count];
    auto seen = share.bounds.load(std::memory_order_acquire);
    while (begin_of(seen) < end_of(seen)) {
      const bool is_own = i == 0;
      const auto rest = is_own ? bounds_of(begin_of(seen) + 1, end_of(seen))
                               : bounds_of(begin_of(seen), end_of(seen) - 1);
      if (share.bounds.compare_exchange_weak(seen, rest, std::memory_order_acq_rel)) {
        index = is_own ? begin_of(seen) : end_of(seen) - 1;
        return &share;
      }
    }
  }
  return nullptr;
}

bool ClaimedItems::has_some() const {
  for (const auto& share : shares_) {
    const auto bounds = share.bounds.load();
    if (begin_of(bounds) < end_of(bounds)) return true;
  }
  return false;
}

std::exception_ptr ClaimedItems::finish() {
  const auto done = [this] {
    std::uint32_t sum = 0;
    for (const auto& share : shares_) sum += share.done.load(std::memory_order_acquire);
    return sum;
  };
  while (done() != put_items_) pause_briefly();
  if (failure_ == nullptr) return nullptr;
  has_failed_.clear();
  return std::exchange(failure_, nullptr);
}

void ClaimedItems::end() {
  has_ended_.store(true);
  puts_.fetch_add(1);
  puts_.notify_all();
}

void ClaimedItems::keep_failure() {
  if (!has_failed_.test_and_set()) failure_ = std::current_exception();
}

}  // namespace muster::engine
