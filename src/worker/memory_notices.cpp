// A budget that is whole again proves nothing yet: it grows by passes that may have been small, and
// the next large one may find no memory. Hence the wait before that is told.

#include "worker/memory_notices.h"

#include <fmt/format.h>

#include <utility>

namespace muster {

std::optional<std::string> MemoryNotices::look(std::size_t tokens, TimePoint now) {
  const MutexLock lock(mutex_);
  const bool is_new_low = tokens < told_;
  if (!is_new_low) {
    if (told_ >= whole_) return std::nullopt;
    if (tokens < whole_) {
      whole_since_.reset();
      return std::nullopt;
    }
    if (!whole_since_) whole_since_ = now;
    if (now - *whole_since_ < kSettled) return std::nullopt;
  }
  whole_since_.reset();
  const auto told = std::exchange(told_, tokens);
  return fmt::format("the GPU's memory {}: it computes {} tokens at once, not {}",
                     is_new_low ? "is short" : "is there again", tokens, told);
}

}  // namespace muster
