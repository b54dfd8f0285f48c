// The part of the coordinator that answers: frames of a worker, and its end.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/coordinator.h"

namespace muster {
namespace {

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const auto begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace

Status Coordinator::start_worker(Slot& slot) {
  slot.process = MUSTER_TRY(WorkerProcess::start({.program = options_.worker_program,
                                                  .torch_root = options_.torch_root,
                                                  .device = slot.device}));
  slot.state = State::Starting;
  slot.last_sign = clock_.now();
  return Done{};
}

Status Coordinator::on_frame(Slot& slot, const FrameHeader& header,
                             std::span<const std::byte> payload) {
  slot.last_sign = clock_.now();
  switch (static_cast<MessageType>(header.type)) {
    case MessageType::Hello:
      return on_hello(slot, payload);
    case MessageType::Verdict:
      slot.state = State::Greeted;
      verdict_ = decode_verdict(payload);
      return Done{};
    case MessageType::Ready:
      return on_ready(slot, payload);
    case MessageType::Rows:
      return on_rows(slot, header.id, payload);
    case MessageType::Failed:
      return on_failed(slot, header.id, payload);
    case MessageType::LoadFailed: {
      const auto failed = MUSTER_TRY(decode_load_failed(payload));
      return Error{failed.error.kind, fmt::format("{}: {}", slot.total.name, failed.error.message)};
    }
    case MessageType::Probe:
    case MessageType::Load:
    case MessageType::Unload:
    case MessageType::Batch:
    case MessageType::ComputeTest:
    case MessageType::ComputeResult:  // of `muster doctor` alone
      break;
  }
  return Error{ErrorKind::Corrupt, fmt::format("{}: worker sent an unknown message: type {}",
                                               slot.total.name, header.type)};
}

Status Coordinator::on_hello(Slot& slot, std::span<const std::byte> payload) {
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
  slot.state = State::Greeted;
  if (load_) send_load(slot);
  return Done{};
}

void Coordinator::send_load(Slot& slot) {
  Load request = *load_;
  request.model.device = slot.device.kind;
  request.cpus = slot.device.cpus;
  slot.state = State::Loading;
  slot.last_sign = clock_.now();
  // A failed send means a dead worker: its end-of-file is handled by the next step.
  (void)slot.process->channel().send(static_cast<std::uint8_t>(MessageType::Load), 0,
                                     encode(request));
}

Status Coordinator::on_ready(Slot& slot, std::span<const std::byte> payload) {
  const auto ready = MUSTER_TRY(decode_ready(payload));
  if (dim_ != 0 && dim_ != ready.dim) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("workers disagree on the dimension: {} and {}", dim_, ready.dim)};
  }
  dim_ = ready.dim;
  slot.lane_count = ready.lane_count;
  slot.total.weights_bytes = ready.weights_bytes;
  slot.total.load_peak_bytes = ready.load_peak_bytes;
  slot.state = State::Ready;
  const auto now = clock_.now();
  if (!slot.first_ready_at) slot.first_ready_at = now;
  if (!first_ready_at_) first_ready_at_ = now;
  return Done{};
}

Status Coordinator::on_rows(Slot& slot, std::uint64_t id, std::span<const std::byte> payload) {
  const auto rows = MUSTER_TRY(decode_rows(payload));
  const auto found = std::find_if(slot.in_flight.begin(), slot.in_flight.end(),
                                  [id](const InFlight& running) { return running.batch.id == id; });
  const auto row_size = std::size_t{dim_} * sizeof(float);
  if (found == slot.in_flight.end() || rows.dim != dim_ ||
      rows.rows.size() != found->batch.items.size() * row_size) {
    return Error{
        ErrorKind::Corrupt,
        fmt::format("{}: worker answered a batch that it does not have: {}", slot.total.name, id)};
  }
  const auto batch = std::move(found->batch);
  slot.in_flight.erase(found);
  const auto engine = Duration(rows.engine_ns);
  slot.cost.learn(batch.token_count, engine);
  slot.restarts.on_batch_served();
  slot.total.text_count += batch.items.size();
  slot.total.token_count += batch.token_count;
  slot.total.activation_peak_bytes =
      std::max(slot.total.activation_peak_bytes, rows.activation_peak_bytes);
  slot.total.engine_seconds += seconds(engine) / slot.lane_count;
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    ids_.erase(batch.items[i].key);
    events_.on_row(batch.items[i].key, rows.rows.subspan(i * row_size, row_size));
  }
  return Done{};
}

Status Coordinator::on_failed(Slot& slot, std::uint64_t id, std::span<const std::byte> payload) {
  const auto failed = MUSTER_TRY(decode_failed(payload));
  if (slot.state == State::Probing) {
    slot.state = State::Greeted;
    verdict_ = failed.error;
    return Done{};
  }
  const auto found = std::find_if(slot.in_flight.begin(), slot.in_flight.end(),
                                  [id](const InFlight& running) { return running.batch.id == id; });
  if (found == slot.in_flight.end()) {
    return Error{failed.error.kind, fmt::format("{}: {}", slot.total.name, failed.error.message)};
  }
  auto batch = std::move(found->batch);
  slot.in_flight.erase(found);
  if (failed.error.kind == ErrorKind::ResourceExhausted && batch.items.size() > 1) {
    slot.token_budget = std::max<std::uint64_t>(1, batch.token_count / 2);
    events_.on_notice(
        fmt::format("{}: out of memory with {} tokens; its batches are now at most {}",
                    slot.total.name, batch.token_count, slot.token_budget));
    queue_.give_back(std::move(batch));
  } else if (batch.items.size() == 1) {
    fail_item(batch.items.front().key, failed.error);
  } else {
    strike(slot, std::move(batch), failed.error.message);
  }
  return Done{};
}

void Coordinator::strike(Slot& slot, WorkBatch batch, const std::string& reason) {
  if (const auto key = queue_.strike(std::move(batch), index_of(slot))) {
    fail_item(*key, Error{ErrorKind::Internal,
                          fmt::format("this text alone makes the worker fail: {}", reason)});
  }
}

void Coordinator::fail_item(ItemKey key, const Error& error) {
  ids_.erase(key);
  events_.on_item_failed(key, error);
}

Status Coordinator::on_worker_end(Slot& slot) {
  const bool was_ready = slot.state == State::Ready;
  // Closing its socket before waiting: a worker that hangs on to life sees end-of-file at least.
  slot.process->close();
  slot.process->kill_if_alive();
  const auto death = slot.process->reap();
  slot.process->read_stderr([&](const std::string& line) {
    events_.on_notice(fmt::format("[{}] {}", slot.total.name, line));
  });
  reaped_cpu_seconds_ += death.cpu_seconds;
  slot.last_words = fmt::format("{}: worker ended with {}{}{}", slot.total.name, death.reason,
                                slot.process->stderr_tail().empty() ? "" : "; it last said: ",
                                last_line(slot.process->stderr_tail()));
  slot.process.reset();

  // The oldest `lane_count` batches were running and may be the cause; the rest was only waiting
  // there.
  const auto running_count = std::min<std::size_t>(slot.lane_count, slot.in_flight.size());
  const auto batch_count = slot.in_flight.size();
  std::size_t at = 0;
  for (auto& lost : std::exchange(slot.in_flight, {})) {
    if (death.is_own_fault && at++ < running_count) {
      strike(slot, std::move(lost.batch), death.reason);
    } else {
      queue_.give_back(std::move(lost.batch));
    }
  }

  const auto now = clock_.now();
  const auto delay =
      slot.restarts.on_death(now, {.was_ready = was_ready, .is_own_fault = death.is_own_fault});
  if (!delay) {
    slot.state = State::GivenUp;
    events_.on_notice(fmt::format("{}; it cannot start and is given up", slot.last_words));
    return Done{};
  }
  slot.state = State::Waiting;
  slot.restart_at = now + *delay;
  events_.on_notice(
      fmt::format("{}: worker ended with {}; {} batches wait again, restart {}", slot.total.name,
                  death.reason, batch_count,
                  *delay == Duration{0} ? "at once" : fmt::format("in {:.1f} s", seconds(*delay))));
  return Done{};
}

}  // namespace muster
