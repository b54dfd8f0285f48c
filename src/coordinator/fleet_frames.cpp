// What groups answer, and what follows from it for the others: each frame goes to its owner, and
// what one owner finds out that concerns another goes through here.

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "coordinator/worker_fleet.h"

namespace muster {

Status WorkerFleet::on_frame(std::size_t group, const FrameHeader& header,
                             std::span<const std::byte> payload) {
  switch (static_cast<MessageType>(header.type)) {
    case MessageType::Ready:
      return on_ready(group, payload);
    case MessageType::LoadFailed:
      return on_load_failed(group, payload);
    case MessageType::Rows:
      return on_rows(group, header.id, payload);
    case MessageType::Failed:
      return on_failed(group, header.id, payload);
    default:
      return Error{ErrorKind::Corrupt, fmt::format("{}: worker sent an unknown message: type {}",
                                                   supervisor_.life(group).name, header.type)};
  }
}

Status WorkerFleet::on_ready(std::size_t group, std::span<const std::byte> payload) {
  const auto ready = MUSTER_TRY(decode_ready(payload));
  MUSTER_TRY(models_.on_loaded(group, ready));
  supervisor_.on_load_answered(group, std::max(1U, ready.lane_count));
  models_.ask_first_canary(group, ready.model_id);
  return Done{};
}

Status WorkerFleet::on_load_failed(std::size_t group, std::span<const std::byte> payload) {
  const auto failed = MUSTER_TRY(decode_load_failed(payload));
  if (!models_.on_load_failed(group, failed)) return Done{};
  supervisor_.on_load_answered(group, 0);
  const auto& name = supervisor_.life(group).name;
  // A job that has other devices does not wait for the memory of one.
  const auto& memory = table_.find(group, failed.model_id)->memory;
  const bool is_tried_again = memory && (!options_.gives_up || is_last(group));
  if (options_.gives_up && !is_tried_again) {
    supervisor_.give_up(
        group, fmt::format("the model cannot be loaded: {}", failed.error.message),
        Error{failed.error.kind, fmt::format("{}: {}", name, failed.error.message)});
    return Done{};
  }
  const auto again = is_tried_again
                         ? fmt::format("; it is tried again in {:.0f} s", seconds(memory->pause()))
                         : "";
  supervisor_.notice(group,
                     fmt::format("a model cannot be loaded: {}{}", failed.error.message, again));
  work_.update_group(group);
  signal_.change();
  if (!table_.may_be_loaded(failed.model_id)) {
    work_.fail_waiting(failed.model_id,
                       {ErrorKind::Unavailable, fmt::format("the model cannot be loaded: {}: {}",
                                                            name, failed.error.message)});
  }
  return Done{};
}

// Every other one is given up.
bool WorkerFleet::is_last(std::size_t group) const {
  for (std::size_t i = 0; i < table_.group_count(); ++i) {
    if (i != group && !supervisor_.life(i).is_given_up) return false;
  }
  return true;
}

// What the group has failed at is for whoever has the memory.
void WorkerFleet::on_full(std::size_t group, ModelId model, const std::string& sentence) {
  supervisor_.notice(group, sentence);
  work_.excuse(group, model);
  work_.update_group(group);
  signal_.change();
}

// The answer to a lone query has interrupted the worker that gave it, where both are on one core.
// Once the worker sleeps, the kernel wakes the client here too, instead of on a core that has
// halted: 50 us, on a virtual machine. Source: Linux 6.18, kernel/sched/fair.c, wake_affine_idle.
void WorkerFleet::let_worker_sleep(std::size_t group) const {
  if (!options_.is_low_latency) return;
  const auto& cpus = supervisor_.life(group).leader().cpus;
  if (!work_.is_only_text() || cpus.size() != 1) return;
  if (::sched_getcpu() == static_cast<int>(cpus.front())) ::sched_yield();
}

Error WorkerFleet::protocol_error(std::size_t group, const std::string& what) const {
  return {ErrorKind::Corrupt, fmt::format("{}: worker {}", supervisor_.life(group).name, what)};
}

// An answer that does not fit its batch leaves the batch where it is: the group is ended for it,
// and the texts go back with all else that it has.
Status WorkerFleet::on_rows(std::size_t group, std::uint64_t id,
                            std::span<const std::byte> payload) {
  let_worker_sleep(group);
  const auto rows = MUSTER_TRY(decode_rows(payload));
  const auto* found = supervisor_.sent(group).find(id);
  if (found == nullptr) {
    return protocol_error(group, fmt::format("answered a batch that it does not have: {}", id));
  }
  const auto dim = table_.on(group).at(found->model).status.dim;
  const auto row_count = rows.rows.size() / sizeof(float) / std::max(1U, rows.dim);
  if (rows.dim != dim || row_count != found->text_count) {
    return protocol_error(group, fmt::format("answered {} rows of {} floats to a batch of {} "
                                             "texts, whose rows have {}",
                                             row_count, rows.dim, found->text_count, dim));
  }
  const auto sent = *supervisor_.take_sent(group, id);
  work_.note_activation_peak(group, rows.activation_peak_bytes);
  switch (sent.kind) {
    case FrameKind::Batch:
      work_.on_rows(group, id, rows);
      break;
    case FrameKind::Canary:
      models_.on_canary_row(group, sent, rows);
      break;
    case FrameKind::Trial:
      models_.on_trial_batch(group, sent, rows);
      break;
  }
  return Done{};
}

Status WorkerFleet::on_failed(std::size_t group, std::uint64_t id,
                              std::span<const std::byte> payload) {
  const auto failed = MUSTER_TRY(decode_failed(payload));
  if (supervisor_.life(group).is_probing && id == 0) {
    supervisor_.on_verdict(group, failed.error);
    return Done{};
  }
  const auto sent = supervisor_.take_sent(group, id);
  if (!sent) return protocol_error(group, "failed at no batch: " + failed.error.message);
  work_.count_failed(group);
  if (sent->kind == FrameKind::Batch) {
    work_.on_failed(group, id, failed.error);
  } else if (sent->kind == FrameKind::Trial && failed.error.kind == ErrorKind::ResourceExhausted) {
    models_.on_trial_too_large(group, *sent);
  } else {
    models_.on_canary_failed(group, *sent, failed.error);
  }
  return Done{};
}

void WorkerFleet::on_ended(std::size_t group) {
  work_.on_ended(group);
  models_.on_ended(group);
}

void WorkerFleet::on_models_changed(std::size_t group) {
  if (!table_.on(group).empty()) supervisor_.wake(group);
  work_.update_group(group);
}

void WorkerFleet::on_model_ready(std::size_t group) {
  supervisor_.on_model_ready(group);
  work_.update_group(group);
  signal_.change();
}

void WorkerFleet::on_right_canary(std::size_t group, ModelId model,
                                  std::optional<bool> is_in_time) {
  if (work_.acquit(group, model)) return;
  if (is_in_time) supervisor_.on_right_canary(group, *is_in_time);
}

void WorkerFleet::on_disputed_canary(std::size_t group, const std::string& reason) {
  supervisor_.notice(group, fmt::format("{}; both are started again and asked again", reason));
  supervisor_.end_group(group, EndReason::Health, reason, WorkerEnd::Innocent);
}

}  // namespace muster
