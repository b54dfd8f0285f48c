// How long a call for replies may take. One that names a deadline has so long from its coming to
// its end. One that names none may be without a worker for as long as the server says, at its
// beginning or where its worker was lost: how long its replies may be computed is said by their
// tokens, and a worker that hangs is ended. A default that cut replies off would end every long one
// in its middle.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "serving/generation_service.h"

namespace muster {

// When it is to be looked at again: by then something of it may have waited for too long.
TimePoint GenerationService::due(const Call& call) const {
  if (call.deadline) return call.asked_at + *call.deadline;
  auto since = clock_.now();
  if (call.sent_count == 0) since = call.asked_at;
  for (const auto& choice : call.choices) {
    if (!choice.stream) continue;
    const auto waits = call.decoder->fleet->waits_since(*choice.stream);
    since = std::min(since, waits.value_or(since));
  }
  return since + std::max<Duration>(wait_most_, std::chrono::milliseconds(1));
}

void GenerationService::set_timer(CallId id, Call& call) {
  call.timer = loop_.timer([this, id] { on_time(id); });
  call.timer->set(due(call));
}

void GenerationService::on_time(CallId id) {
  auto& call = calls_.at(id);
  if (const auto at = due(call); clock_.now() < at) return call.timer->set(at);
  const auto limit = seconds(call.deadline.value_or(wait_most_));
  fail(id,
       {.error = {ErrorKind::DeadlineExceeded,
                  call.deadline
                      ? fmt::format("no end of the reply within the time allowed: {:.3g} s", limit)
                      : fmt::format("no worker for the reply within the time allowed: {:.3g} s",
                                    limit)}});
}

}  // namespace muster
