// The part of the fleet that answers what workers say.

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "coordinator/worker_fleet.h"

namespace muster {
namespace {

/// Of float32 as bytes: an exponent of all ones is an infinity or no number.
bool is_finite(std::span<const std::byte> row) {
  constexpr std::uint32_t kExponent = 0x7F800000;
  bool is_all = true;
  for (std::size_t at = 0; at + sizeof(float) <= row.size(); at += sizeof(float)) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, row.data() + at, sizeof bits);
    is_all &= (bits & kExponent) != kExponent;
  }
  return is_all;
}

}  // namespace

Status WorkerFleet::on_frame(WorkerSlot& slot, const FrameHeader& header,
                             std::span<const std::byte> payload) {
  // What a worker that is being ended still says is passed over: its work is with others.
  if (slot.end_by) return Done{};
  slot.last_sign = clock_.now();
  switch (static_cast<MessageType>(header.type)) {
    case MessageType::Hello:
      return on_hello(slot, payload);
    case MessageType::Verdict:
      slot.is_probing = false;
      verdict_ = decode_verdict(payload);
      sync(slot);
      return Done{};
    case MessageType::Ready:
      return on_ready(slot, payload);
    case MessageType::LoadFailed:
      return on_load_failed(slot, payload);
    case MessageType::Rows:
      return on_rows(slot, header.id, payload);
    case MessageType::Failed:
      return on_failed(slot, header.id, payload);
    case MessageType::Probe:
    case MessageType::Load:
    case MessageType::Unload:
    case MessageType::Batch:
    case MessageType::Expect:
    // Decoders are no part of a fleet yet (jobs/decoder_session.h).
    case MessageType::LoadDecoder:
    case MessageType::DecoderReady:
    case MessageType::Generate:
    case MessageType::Tokens:
    case MessageType::Cancel:
    case MessageType::Finished:
    case MessageType::ComputeTest:
    case MessageType::ComputeResult:  // of `muster doctor` alone
      break;
  }
  return Error{ErrorKind::Corrupt, fmt::format("{}: worker sent an unknown message: type {}",
                                               slot.total.name, header.type)};
}

Status WorkerFleet::on_hello(WorkerSlot& slot, std::span<const std::byte> payload) {
  auto hello = MUSTER_TRY(decode_hello(payload));
  if (hello.protocol != Hello::kProtocol || hello.build != options_.build) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{} is of another build: it is {}, this is {}",
                             options_.worker_program.string(), hello.build, options_.build)};
  }
  if (!slot.engine_class.empty() && slot.engine_class != hello.engine_class) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}: the engine changed between two starts: {} and {}",
                             slot.total.name, slot.engine_class, hello.engine_class)};
  }
  slot.engine_class = std::move(hello.engine_class);
  slot.is_greeted = true;
  has_ever_greeted_ = true;
  if (slot.models.empty()) slot.reason.clear();  // else when it has loaded
  changed();
  return Done{};
}

Status WorkerFleet::on_ready(WorkerSlot& slot, std::span<const std::byte> payload) {
  const auto ready = MUSTER_TRY(decode_ready(payload));
  const auto here = slot.models.find(ready.model_id);
  if (here == slot.models.end() || here->second.status.state != ModelState::Loading) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("{}: worker loaded a model that nobody asked for: {}", slot.total.name,
                             ready.model_id)};
  }
  const auto model = models_.find(ready.model_id);
  if (model != models_.end()) {
    auto& dim = model->second.dim;
    if (ready.dim == 0 || (dim != 0 && dim != ready.dim)) {
      return Error{ErrorKind::Corrupt,
                   fmt::format("workers disagree on the dimension: {} and {}", dim, ready.dim)};
    }
    dim = ready.dim;
  }
  judge_from_now(slot);  // beside the load batches had longer
  slot.lane_count = std::max(1U, ready.lane_count);
  auto& status = here->second.status;
  status.dim = ready.dim;
  status.weights_bytes = ready.weights_bytes;
  status.load_peak_bytes = ready.load_peak_bytes;
  on_model_loaded(slot, ready.model_id);
  return Done{};
}

Status WorkerFleet::on_load_failed(WorkerSlot& slot, std::span<const std::byte> payload) {
  const auto failed = MUSTER_TRY(decode_load_failed(payload));
  const auto here = slot.models.find(failed.model_id);
  if (here == slot.models.end()) return Done{};
  here->second.status.state = ModelState::Failed;
  here->second.status.reason = failed.error.message;
  judge_from_now(slot);
  if (options_.gives_up) {
    give_up(slot, fmt::format("the model cannot be loaded: {}", failed.error.message));
    slot.load_error =
        Error{failed.error.kind, fmt::format("{}: {}", slot.total.name, failed.error.message)};
    return Done{};
  }
  notice(slot, fmt::format("a model cannot be loaded: {}", failed.error.message));
  sync(slot);
  changed();
  const bool can_any = std::any_of(slots_.begin(), slots_.end(), [&](const WorkerSlot& other) {
    const auto there = other.models.find(failed.model_id);
    return there != other.models.end() && there->second.status.state != ModelState::Failed;
  });
  if (!can_any) {
    fail_waiting(failed.model_id,
                 {ErrorKind::Unavailable, fmt::format("the model cannot be loaded: {}: {}",
                                                      slot.total.name, failed.error.message)});
  }
  return Done{};
}

std::optional<InFlight> WorkerFleet::take_in_flight(WorkerSlot& slot, std::uint64_t id) {
  const auto found = std::find_if(slot.in_flight.begin(), slot.in_flight.end(),
                                  [id](const InFlight& sent) { return sent.frame == id; });
  if (found == slot.in_flight.end()) return std::nullopt;
  auto sent = std::move(*found);
  slot.in_flight.erase(found);
  refresh_running(slot);
  return sent;
}

// The answer to a lone query has interrupted the worker that gave it, where both are on one core.
// Once the worker sleeps, the kernel wakes the client here too, instead of on a core that has
// halted: 50 us, on a virtual machine. Source: Linux 6.18, kernel/sched/fair.c, wake_affine_idle.
void WorkerFleet::let_worker_sleep(const WorkerSlot& slot) const {
  const auto& cpus = slot.device.cpus;
  if (texts_.size() != 1 || cpus.size() != 1) return;
  if (::sched_getcpu() == static_cast<int>(cpus.front())) ::sched_yield();
}

Error WorkerFleet::protocol_error(const WorkerSlot& slot, const std::string& what) const {
  return {ErrorKind::Corrupt, fmt::format("{}: worker {}", slot.total.name, what)};
}

// An answer that does not fit its batch leaves the batch where it is: the worker is ended for it,
// and the texts go back with all else that it has.
Status WorkerFleet::on_rows(WorkerSlot& slot, std::uint64_t id,
                            std::span<const std::byte> payload) {
  let_worker_sleep(slot);
  const auto rows = MUSTER_TRY(decode_rows(payload));
  const auto found = std::find_if(slot.in_flight.begin(), slot.in_flight.end(),
                                  [id](const InFlight& sent) { return sent.frame == id; });
  if (found == slot.in_flight.end()) {
    return protocol_error(slot, fmt::format("answered a batch that it does not have: {}", id));
  }
  const auto dim = slot.models.at(found->model).status.dim;
  const auto row_count = rows.rows.size() / sizeof(float) / std::max(1U, rows.dim);
  if (rows.dim != dim || row_count != found->text_count) {
    return protocol_error(slot, fmt::format("answered {} rows of {} floats to a batch of {} texts, "
                                            "whose rows have {}",
                                            row_count, rows.dim, found->text_count, dim));
  }
  auto sent = *take_in_flight(slot, id);
  const auto engine = Duration(rows.engine_ns);
  slot.total.activation_peak_bytes =
      std::max(slot.total.activation_peak_bytes, rows.activation_peak_bytes);
  if (sent.is_canary) {
    on_canary_row(slot, sent, rows.rows, engine);
  } else if (sent.is_trial) {
    on_trial_batch(slot, sent, engine);
  } else if (sent.batch) {
    deliver(slot, *std::move(sent.batch), rows);
  }
  return Done{};
}

void WorkerFleet::deliver(WorkerSlot& slot, DispatchBatch batch, const Rows& rows) {
  const auto row_size = std::size_t{rows.dim} * sizeof(float);
  const auto row_of = [&](std::size_t i) { return rows.rows.subspan(i * row_size, row_size); };
  auto items = batch.work.items;
  std::vector<std::size_t> finite;
  std::vector<WorkItem> others;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (is_finite(row_of(i))) {
      finite.push_back(i);
    } else if (texts_.count(items[i].key) > 0) {  // not cancelled
      others.push_back(items[i]);
    }
  }
  if (others.empty()) {
    const auto engine = Duration(rows.engine_ns);
    dispatcher_.on_served(index_of(slot), batch, engine);
    slot.health.on_served(batch.model, batch.work.token_count, engine);
    slot.restarts.on_batch_served();
    slot.blame.on_served();
    slot.total.token_count += batch.work.token_count;
    slot.total.engine_seconds += seconds(engine) / slot.lane_count;
    if (slot.budget.on_served(batch.work.token_count)) sync(slot);
    blame_outdone(slot, batch);
  } else {
    batch.work.items = std::move(others);
    on_not_finite(slot, std::move(batch));
  }
  slot.total.text_count += finite.size();
  ++slot.total.batch_count;
  for (const auto i : finite) {
    if (texts_.erase(items[i].key) == 0) continue;  // cancelled
    events_.on_row(items[i].key, row_of(i), index_of(slot));
  }
}

Status WorkerFleet::on_failed(WorkerSlot& slot, std::uint64_t id,
                              std::span<const std::byte> payload) {
  const auto failed = MUSTER_TRY(decode_failed(payload));
  if (slot.is_probing && id == 0) {
    slot.is_probing = false;
    verdict_ = failed.error;
    sync(slot);
    return Done{};
  }
  auto sent = take_in_flight(slot, id);
  if (!sent) return protocol_error(slot, "failed at no batch: " + failed.error.message);
  ++slot.total.failed_batch_count;
  if (sent->is_trial && failed.error.kind == ErrorKind::ResourceExhausted) {
    on_trial_too_large(slot, *sent);
  } else if (sent->is_canary || sent->is_trial) {
    on_canary_failed(slot, *sent, failed.error);
  } else if (sent->batch) {
    on_batch_failed(slot, std::move(*sent->batch), failed.error);
  }
  return Done{};
}

}  // namespace muster
