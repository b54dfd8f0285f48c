// Texts travel in chunks, so that a lock and a wake-up are shared by many. A chunk has a number;
// what is done ahead of its turn waits for those before it, so that the order does not depend on
// the threads.

#include "jobs/encode_pool.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <system_error>

#include "base/clock.h"
#include "base/prefetch.h"

namespace muster {
namespace {

// About a millisecond of a thread's time, texts of a line as texts of a page: a wake-up, of the
// thread and then of the loop, is a hundredth of it, and at the end of an input the threads still
// share what is left.
constexpr std::size_t kChunkBytes = 16 * 1024;
constexpr std::size_t kChunkTexts = 256;

constexpr std::size_t kBytesOfToken = 4;  // about so many
constexpr std::size_t kTextsAhead = 4;    // whose bytes are fetched while one is tokenised

}  // namespace

EncodePool::EncodePool(const TextEncoder& encoder, std::size_t thread_most)
    : encoder_(encoder.another()),
      thread_most_(thread_most),
      ready_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  start_thread();
}

EncodePool::~EncodePool() {
  {
    const MutexLock lock(mutex_);
    is_over_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void EncodePool::start_thread() {
  threads_.emplace_back([this, encoder = encoder_->another()] { run(*encoder); });
}

void EncodePool::give(ItemKey key, std::string_view text) {
  if (gathered_.texts.empty()) gathered_.texts.reserve(kChunkTexts);
  gathered_.texts.emplace_back(key, text);
  gathered_.size += text.size();
  if (gathered_.size >= kChunkBytes || gathered_.texts.size() >= kChunkTexts) flush();
}

void EncodePool::flush() {
  if (gathered_.texts.empty()) return;
  gathered_.number = next_number_++;
  pending_count_ += gathered_.texts.size();
  {
    const MutexLock lock(mutex_);
    waiting_.push_back(std::move(gathered_));
  }
  changed_.notify_one();
  gathered_ = {};
}

// The eventfd is written once for all that is ready, and read here: what becomes ready afterwards
// writes it again.
std::vector<PoolText> EncodePool::take() {
  std::vector<PoolText> texts;
  const MutexLock lock(mutex_);
  while (!done_.empty() && done_.begin()->first == next_taken_) {
    auto& chunk = done_.begin()->second;
    busy_seconds_ += chunk.busy_seconds;
    if (texts.empty()) {
      texts = std::move(chunk.done);
    } else {
      std::move(chunk.done.begin(), chunk.done.end(), std::back_inserter(texts));
    }
    done_.erase(done_.begin());
    ++next_taken_;
  }
  pending_count_ -= texts.size();
  if (!texts.empty()) {
    std::uint64_t count = 0;
    (void)!::read(ready_.get(), &count, sizeof count);
  }
  return texts;
}

void EncodePool::grow() {
  if (threads_.size() >= thread_most_) return;
  {
    const MutexLock lock(mutex_);
    if (waiting_.empty()) return;
  }
  try {
    start_thread();
  } catch (const std::system_error&) {
    thread_most_ = threads_.size();  // the process may have no more: these do
  }
}

void EncodePool::run(TextEncoder& encoder) {
  for (;;) {
    Chunk chunk;
    {
      MutexLock lock(mutex_);
      while (waiting_.empty() && !is_over_) changed_.wait(mutex_);
      if (is_over_) return;
      chunk = std::move(waiting_.front());
      waiting_.pop_front();
    }
    encode(chunk, encoder);
    const MutexLock lock(mutex_);
    const auto number = chunk.number;
    done_.emplace(number, std::move(chunk));
    if (number != next_taken_) continue;
    constexpr std::uint64_t kOne = 1;
    (void)!::write(ready_.get(), &kOne, sizeof kOne);
  }
}

void EncodePool::encode(Chunk& chunk, TextEncoder& encoder) {
  const SteadyClock clock;
  const auto begin = clock.now();
  const auto count = chunk.texts.size();
  const auto all = std::make_shared<TextIds::List>();
  all->reserve(
      std::min(chunk.size / kBytesOfToken + 8 * count, count * std::size_t{encoder.length_max()}));
  chunk.done.reserve(count);
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kTextsAhead < count) {  // they come from another core's cache
      prefetch(std::as_bytes(std::span(chunk.texts[i + kTextsAhead].second)));
    }
    const auto& [key, text] = chunk.texts[i];
    const bool is_truncated = encoder.encode(text, ids).is_truncated;
    const TextIds::Part part{.begin = all->size(), .size = ids.size()};
    all->insert(all->end(), ids.begin(), ids.end());
    chunk.done.push_back({.key = key, .ids = TextIds(all, part), .is_truncated = is_truncated});
  }
  chunk.busy_seconds = seconds(clock.now() - begin);
}

}  // namespace muster
