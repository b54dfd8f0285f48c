// How many replies may wait for a decoder, and whose.

#include "scheduler/reply_admission.h"

#include <algorithm>

namespace muster {

ReplyAnswer ask_for_places(const ReplyQueue& queue, std::string_view caller,
                           std::size_t reply_count) {
  using Verdict = ReplyAnswer::Verdict;
  const auto behind_free = [free = queue.free_count](std::size_t number) {
    return number - std::min(number, free);
  };
  std::size_t all = 0;
  for (const auto& [name, number] : queue.waiting) all += number;
  const auto found = queue.waiting.find(caller);
  const std::size_t own = found == queue.waiting.end() ? 0 : found->second;
  if (behind_free(all + reply_count) > queue.waiting_most) {
    return {.verdict = Verdict::NoRoom, .waiting_count = behind_free(all)};
  }
  const auto room_left = queue.waiting_most - behind_free(all + reply_count);
  if (!caller.empty() && behind_free(own) > 0 && behind_free(own + reply_count) > room_left) {
    return {.verdict = Verdict::OthersRoom, .waiting_count = behind_free(own)};
  }
  std::size_t ahead = own;
  for (const auto& [name, number] : queue.waiting) {
    if (name != caller) ahead += std::min(number, own + 1);
  }
  return {.verdict = Verdict::LetIn, .place_count = behind_free(ahead + 1)};
}

}  // namespace muster
