#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "coordinator/text_ids.h"
#include "jobs/text_encoder.h"
#include "scheduler/batch_queue.h"

namespace muster {

/// A text as its model sees it.
struct PoolText {
  ItemKey key = 0;
  TextIds ids;  // a part of those of its chunk
  bool is_truncated = false;
};

/// Tokenises the texts of a run on threads of its own. They come back in the order in which they
/// were given, whatever thread was faster. It begins with one thread, which is enough for a CPU's
/// devices; `grow` adds one where devices wait for texts.
///
/// Nothing here is bounded: its owner gives no more texts than its window has room for.
///
/// Threads: not thread-safe; owned by the loop of the run.
class EncodePool {
 public:
  /// encoder: its threads have others like it. thread_most: at least 1.
  EncodePool(const TextEncoder& encoder, std::size_t thread_most);
  /// Drops what is not done; waits for the texts that threads are at.
  ~EncodePool();
  EncodePool(const EncodePool&) = delete;
  EncodePool& operator=(const EncodePool&) = delete;

  /// text: valid UTF-8, which stays where and as it is until `take` gives it back or the pool is
  /// gone. It goes to a thread with others, once they are worth waking one, or by `flush`.
  void give(ItemKey key, std::string_view text);
  void flush();

  /// The next ones of the order that are done. Never waits.
  std::vector<PoolText> take();

  /// Readable when there is something to take.
  int ready_fd() const { return ready_.get(); }

  /// One thread more, where texts wait for one and there may be more.
  void grow();

  /// Texts that a thread has or is to have, and those that may be taken.
  std::size_t pending_count() const { return pending_count_; }

  std::size_t thread_count() const { return threads_.size(); }

  /// Time that threads have spent on texts that were taken, summed.
  double busy_seconds() const { return busy_seconds_; }

 private:
  /// Some texts, and what became of them.
  struct Chunk {
    std::uint64_t number = 0;
    std::vector<std::pair<ItemKey, std::string_view>> texts;  // the owner's
    std::size_t size = 0;                                     // of all, in bytes
    std::vector<PoolText> done;
    double busy_seconds = 0;
  };

  void start_thread();
  void run(TextEncoder& encoder);
  static void encode(Chunk& chunk, TextEncoder& encoder);

  const std::unique_ptr<TextEncoder> encoder_;  // others are made like it
  std::size_t thread_most_;
  const UniqueFd ready_;  // an eventfd
  Chunk gathered_;
  std::uint64_t next_number_ = 0;  // of the next chunk that goes to a thread
  double busy_seconds_ = 0;
  std::size_t pending_count_ = 0;

  Mutex mutex_;
  std::condition_variable_any changed_;
  bool is_over_ MUSTER_GUARDED_BY(mutex_) = false;
  std::deque<Chunk> waiting_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Chunk> done_ MUSTER_GUARDED_BY(mutex_);
  std::uint64_t next_taken_ MUSTER_GUARDED_BY(mutex_) = 0;  // number of the chunk that is next

  std::vector<std::jthread> threads_;
};

}  // namespace muster
