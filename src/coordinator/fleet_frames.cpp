// The part of the fleet that answers what workers say.

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "coordinator/worker_fleet.h"

namespace muster {

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
  const auto message = fmt::format("{}: {}", slot.total.name, failed.error.message);
  if (options_.gives_up) return Error{failed.error.kind, message};
  const auto here = slot.models.find(failed.model_id);
  if (here == slot.models.end()) return Done{};
  here->second.status.state = ModelState::Failed;
  here->second.status.reason = failed.error.message;
  notice(slot, fmt::format("a model cannot be loaded: {}", failed.error.message));
  sync(slot);
  changed();
  const bool can_any = std::any_of(slots_.begin(), slots_.end(), [&](const WorkerSlot& other) {
    const auto there = other.models.find(failed.model_id);
    return there != other.models.end() && there->second.status.state != ModelState::Failed;
  });
  if (!can_any) {
    fail_waiting(failed.model_id,
                 {ErrorKind::Unavailable, fmt::format("the model cannot be loaded: {}", message)});
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

Status WorkerFleet::on_rows(WorkerSlot& slot, std::uint64_t id,
                            std::span<const std::byte> payload) {
  let_worker_sleep(slot);
  const auto rows = MUSTER_TRY(decode_rows(payload));
  auto sent = take_in_flight(slot, id);
  const auto here = slot.models.find(sent ? sent->model : 0);
  const auto row_size = std::size_t{rows.dim} * sizeof(float);
  const auto row_count = sent && sent->batch ? sent->batch->work.items.size() : 1;
  const bool is_given_away = sent && !sent->batch && !sent->is_canary;
  if (!sent || here == slot.models.end() || rows.dim != here->second.status.dim ||
      (!is_given_away && rows.rows.size() != row_count * row_size)) {
    return Error{
        ErrorKind::Corrupt,
        fmt::format("{}: worker answered a batch that it does not have: {}", slot.total.name, id)};
  }
  const auto engine = Duration(rows.engine_ns);
  slot.total.activation_peak_bytes =
      std::max(slot.total.activation_peak_bytes, rows.activation_peak_bytes);
  if (is_given_away) return Done{};
  if (sent->is_canary) {
    on_canary_row(slot, *sent, rows.rows, engine);
    return Done{};
  }
  const auto& batch = *sent->batch;
  dispatcher_.on_served(index_of(slot), batch, engine);
  slot.health.on_served(batch.model, batch.work.token_count, engine);
  slot.restarts.on_batch_served();
  slot.total.text_count += batch.work.items.size();
  slot.total.token_count += batch.work.token_count;
  ++slot.total.batch_count;
  slot.total.engine_seconds += seconds(engine) / slot.lane_count;
  if (slot.budget.on_served(batch.work.token_count)) sync(slot);
  for (std::size_t i = 0; i < batch.work.items.size(); ++i) {
    const auto key = batch.work.items[i].key;
    if (texts_.erase(key) == 0) continue;  // cancelled
    events_.on_row(key, rows.rows.subspan(i * row_size, row_size), index_of(slot));
  }
  return Done{};
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
  if (!sent) {
    return Error{failed.error.kind, fmt::format("{}: {}", slot.total.name, failed.error.message)};
  }
  ++slot.total.failed_batch_count;
  if (sent->is_canary) {
    on_canary_failed(slot, *sent, failed.error);
  } else if (sent->batch) {
    on_batch_failed(slot, std::move(*sent->batch), failed.error);
  }
  return Done{};
}

void WorkerFleet::on_batch_failed(WorkerSlot& slot, DispatchBatch batch, const Error& error) {
  if (error.kind == ErrorKind::ResourceExhausted && batch.work.items.size() > 1) {
    slot.budget.on_out_of_memory(batch.work.token_count);
    notice(slot, fmt::format("out of memory with {} tokens; its batches are now at most {}",
                             batch.work.token_count, slot.budget.now()));
    give_back(slot, std::move(batch));
    sync(slot);
    return;
  }
  strike(slot, std::move(batch), error);
}

}  // namespace muster
