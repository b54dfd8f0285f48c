// A queue between two threads that is ordered by start-time fair queueing, in bytes: what reading a
// prompt costs.

#include "serving/prompt_queue.h"

#include <fmt/format.h>

namespace muster {
namespace {

// What a prompt costs beside its bytes, in bytes: without it a key's empty ones would be free. As
// of a text (serving_texts.cpp).
constexpr std::uint64_t kPromptBytes = 64;

}  // namespace

Status PromptQueue::push(FlowId flow, std::uint64_t bytes, Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return Error{ErrorKind::Cancelled, "the prompts' queue is closed"};
    if (waiting_.size() >= capacity_) {
      return Error{ErrorKind::ResourceExhausted,
                   fmt::format("the prompts' queue is full: {}", capacity_)};
    }
    const auto cost = bytes + kPromptBytes;
    const auto rank = order_.add(flow, cost);
    waiting_.emplace(Place{rank, next_number_++}, Waiting{flow, cost, std::move(job)});
  }
  changed_.notify_one();
  return Done{};
}

bool PromptQueue::has_room_for(std::size_t count) const {
  const std::lock_guard lock(mutex_);
  return count <= capacity_ && waiting_.size() <= capacity_ - count;
}

std::optional<PromptQueue::Job> PromptQueue::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_closed_ || !waiting_.empty(); });
  if (is_closed_) return std::nullopt;
  const auto first = waiting_.begin();
  auto next = std::move(first->second);
  order_.on_given(next.flow, next.cost, first->first.first);
  waiting_.erase(first);
  return std::move(next.job);
}

void PromptQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace muster
