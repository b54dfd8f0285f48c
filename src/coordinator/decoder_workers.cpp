// The workers of a decoder from their start until they are ready, and what an operator asks of
// them. How they end is in decoder_worker_ends.cpp, their canaries in decoder_worker_canaries.cpp.

#include "coordinator/decoder_workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster {

DecoderWorkers::DecoderWorkers(const DecoderFleetOptions& options, Parts parts)
    : options_(options),
      parts_(std::move(parts)),
      groups_(options.devices.size()),
      drain_limit_(options.drain_limit) {
  for (const auto index : options_.resting) {
    groups_[index].goal = GroupGoal::Drain;
    groups_[index].state = State::Ended;
    groups_[index].reason = "drained";
  }
}

Status DecoderWorkers::start() {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].goal != GroupGoal::Drain) MUSTER_TRY(start_group(i));
  }
  return Done{};
}

Status DecoderWorkers::start_group(std::size_t index) {
  auto& group = groups_[index];
  const auto pids = MUSTER_TRY(parts_.processes.start(index, {options_.devices[index]}));
  group.pid = pids.front();
  group.was_ready = group.was_ended = group.was_at_fault = false;
  group.canary.reset();
  group.canary_error.reset();
  group.state = State::Loading;
  const auto now = parts_.clock.now();
  group.started_at = now;
  group.watch = {};
  group.watch.expect(now, 1);
  // The worker reads it once it has greeted; nothing is lost if that greeting is refused.
  parts_.processes.send(index, MessageType::LoadDecoder, 0,
                        encode(LoadDecoder{.source = options_.source,
                                           .precision = options_.precision,
                                           .kv_cache_dtype = options_.kv_cache_dtype,
                                           .cpus = options_.devices[index].cpus,
                                           .cache_bytes = options_.cache_bytes,
                                           .step_tokens_most = options_.step_tokens_most,
                                           .sequences_most = options_.streams_most,
                                           .has_prefix_cache = options_.has_prefix_cache,
                                           .drafted_tokens_most = options_.drafted_tokens_most}));
  return Done{};
}

// ---- What streams see of them ----

bool DecoderWorkers::takes_streams(std::size_t group) const {
  return groups_[group].state == State::Ready && groups_[group].goal == GroupGoal::Serve;
}

bool DecoderWorkers::is_late(std::size_t group) const {
  return takes_streams(group) && parts_.client.owed_count(group) > 0 &&
         groups_[group].watch.is_late(parts_.clock.now(), options_.silence_most);
}

std::size_t DecoderWorkers::working_count() const {
  if (stop_by_) return 0;
  const auto count = std::count_if(groups_.begin(), groups_.end(), [](const Group& group) {
    if (group.goal == GroupGoal::Drain || group.state == State::Failed) return false;
    if (group.state == State::Ready) return true;
    return group.failed_start_count < kFailedStartsMost && !group.memory;
  });
  return static_cast<std::size_t>(count);
}

Error DecoderWorkers::cannot_work_error() const {
  if (is_to_rest()) return {ErrorKind::Unavailable, "every device is drained"};
  if (load_error_) return *load_error_;
  if (const auto error = common_start_error()) return *error;
  for (const auto& group : groups_) {
    if (!group.reason.empty()) return {ErrorKind::Unavailable, group.reason};
  }
  return {ErrorKind::Unavailable, "no worker can load the decoder"};
}

// nullopt where one of them may have another reason: then it may be a device's fault.
std::optional<Error> DecoderWorkers::common_start_error() const {
  std::optional<Error> first;
  for (const auto& group : groups_) {
    if (group.goal == GroupGoal::Drain) continue;
    if (!group.start_error) return std::nullopt;
    if (!first) first = group.start_error;
  }
  return first;
}

void DecoderWorkers::send(std::size_t group, MessageType type, std::uint64_t id,
                          std::vector<std::byte> payload) {
  if (groups_[group].is_running()) parts_.processes.send(group, type, id, std::move(payload));
}

bool DecoderWorkers::is_ready() const {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (takes_streams(i)) return true;
  }
  return false;
}

bool DecoderWorkers::is_to_rest() const {
  return std::all_of(groups_.begin(), groups_.end(),
                     [](const Group& group) { return group.goal == GroupGoal::Drain; });
}

DecoderGroupView DecoderWorkers::view(std::size_t index) const {
  using Shown = DecoderGroupView::State;
  const auto& group = groups_[index];
  auto state = Shown::Loading;
  if (stop_by_ || group.goal != GroupGoal::Serve) {
    const bool is_to_end = stop_by_ || group.goal == GroupGoal::Drain;
    state = is_to_end && !group.is_running() ? Shown::Drained : Shown::Draining;
  } else if (group.state == State::Ready) {
    state = Shown::Ready;
  } else if (group.state != State::Loading) {
    state = group.state == State::Failed ? Shown::Failed : Shown::Ended;
  }
  const bool is_to_come = state == Shown::Loading || state == Shown::Ended;
  const bool cannot_start = is_to_come && group.cannot_start();
  std::optional<ErrorKind> failure_kind;
  if (state == Shown::Failed) failure_kind = group.failure_kind;
  if (cannot_start && group.start_error) failure_kind = group.start_error->kind;
  return {.state = state,
          .reason = group.reason,
          .failure_kind = failure_kind,
          .start_failure = cannot_start ? group.start_failure : "",
          .waits_for_memory = is_to_come && group.memory.has_value(),
          .is_to_rest = group.goal == GroupGoal::Drain,
          .is_asked_for = group.is_asked_for,
          .pid = group.pid,
          .restart_count = group.restart_count,
          .cache_use = block_count_ == 0 ? 0
                                         : static_cast<double>(group.cache_use.held_block_count) /
                                               static_cast<double>(block_count_),
          .preemption_count = group.earlier_preemption_count + group.cache_use.preemption_count};
}

// ---- What workers say ----

Status DecoderWorkers::on_frame(std::size_t index, std::size_t /*member*/,
                                const FrameHeader& header, std::span<const std::byte> payload) {
  auto& group = groups_[index];
  // What one that is being ended still says was lost with its streams.
  if (group.state == State::Ended || group.state == State::Failed) return Done{};
  const auto type = static_cast<MessageType>(header.type);
  if (type == MessageType::CacheUse) return on_cache_use(index, payload);  // no sign of a step
  const auto now = parts_.clock.now();
  if (type == MessageType::Tokens) group.watch.on_step_done(now);
  group.watch.expect(now, parts_.client.owed_count(index));  // a token of each; else it says so
  switch (type) {
    case MessageType::StepBegun:
      return on_step_begun(index, payload);
    case MessageType::Hello:
      return on_hello(index, payload);
    case MessageType::DecoderReady:
      return on_decoder_ready(index, MUSTER_TRY(decode_decoder_ready(payload)));
    case MessageType::LoadFailed:
      on_load_failed(index, MUSTER_TRY(decode_load_failed(payload)).error);
      return Done{};
    default:
      if (group.state == State::Loading && group.canary) {
        return on_canary_frame(index, header, payload);
      }
      return parts_.client.on_stream_frame(index, header, payload);
  }
}

// More than a step may have is no reason to wait for longer.
Status DecoderWorkers::on_step_begun(std::size_t index, std::span<const std::byte> payload) {
  const auto begun = MUSTER_TRY(decode_step_begun(payload));
  groups_[index].watch.expect(parts_.clock.now(),
                              std::min(begun.token_count, options_.step_tokens_most));
  return Done{};
}

Status DecoderWorkers::on_cache_use(std::size_t index, std::span<const std::byte> payload) {
  auto& group = groups_[index];
  const auto use = MUSTER_TRY(decode_cache_use(payload));
  if (use.held_block_count > block_count_ ||
      use.preemption_count < group.cache_use.preemption_count) {
    return Error{
        ErrorKind::Corrupt,
        fmt::format("a worker's cache of {} blocks has {} in use and {} preemptions behind {}",
                    block_count_, use.held_block_count, use.preemption_count,
                    group.cache_use.preemption_count)};
  }
  group.cache_use = use;
  return Done{};
}

// A program of another build that was put there while others work is no reason to end these.
Status DecoderWorkers::on_hello(std::size_t index, std::span<const std::byte> payload) {
  auto& group = groups_[index];
  const auto hello = MUSTER_TRY(decode_hello(payload));
  if (hello.protocol == Hello::kProtocol && hello.build == options_.build) {
    if (group.started_at) {
      const auto took = parts_.clock.now() - *std::exchange(group.started_at, std::nullopt);
      longest_greeting_ = std::max(longest_greeting_.value_or(took), took);
    }
    return Done{};
  }
  Error error{ErrorKind::Unsupported,
              fmt::format("{} is of another build: it is {}, this is {}",
                          options_.worker_program.string(), hello.build, options_.build)};
  if (length_max_ > 0) return error;
  if (options_.ends_with_other_build) {
    fatal_ = error;
    return error;
  }
  on_load_failed(index, {ErrorKind::Unavailable, error.message});
  return Done{};
}

Status DecoderWorkers::on_decoder_ready(std::size_t index, const DecoderReady& ready) {
  const bool is_first = length_max_ == 0;
  const bool is_same = ready.length_max == length_max_ && ready.vocab_size == vocab_size_ &&
                       ready.weights_bytes == weights_bytes_;
  if (!is_first && !is_same) return changed_source();
  length_max_ = ready.length_max;
  vocab_size_ = ready.vocab_size;
  weights_bytes_ = ready.weights_bytes;
  block_count_ = ready.block_count;
  decoder_class_ = ready.decoder_class;
  if (options_.asks_canary) {
    ask_canary(index, ready);
  } else {
    become_ready(index);
  }
  return Done{};
}

// What the caller can do about it depends on whether its work has an end.
Error DecoderWorkers::changed_source() {
  if (!options_.is_change_fatal) {
    return {ErrorKind::Corrupt,
            fmt::format("{} has changed since it was loaded first; to serve what is there now, "
                        "unload the model and load it again",
                        options_.source)};
  }
  fatal_ = Error{ErrorKind::Corrupt,
                 fmt::format("{} has changed since it was loaded first, and the replies of a run "
                             "must be of one model",
                             options_.source)};
  return *fatal_;
}

// One that had loaded before is started again: what was in its way may pass. So may want of memory;
// until then no stream waits for it.
void DecoderWorkers::on_load_failed(std::size_t index, const Error& error) {
  auto& group = groups_[index];
  parts_.on_notice(fmt::format("the decoder cannot be loaded: {}", error.message), index);
  group.reason = error.message;
  if (group.was_ever_ready) return kill(index, error.message);
  load_error_ = error;
  group.failure_kind = error.kind;
  group.is_asked_for = false;
  close(index, error.message);
  if (options_.waits_for_memory && error.kind == ErrorKind::ResourceExhausted) {
    if (!group.memory) group.memory.emplace();
    group.memory->on_full(parts_.clock.now());
    group.ends_for_memory = true;
  } else {
    group.state = State::Failed;
  }
}

// What a worker has sent is not what a worker sends; where all are of another build, that is the
// end. One that was ended already stays so.
Status DecoderWorkers::on_broken(std::size_t index, const Error& error) {
  if (fatal_) return *fatal_;
  const auto state = groups_[index].state;
  if (state == State::Ended || state == State::Failed) {
    parts_.processes.end(index, GroupEnding::Kill);
  } else {
    kill(index, error.message);
  }
  return Done{};
}

void DecoderWorkers::on_line(std::size_t group, const std::string& line) {
  parts_.on_notice(line, group);
}

// ---- What an operator asks for ----

void DecoderWorkers::begin_drain(std::size_t index, GroupGoal goal) {
  auto& group = groups_[index];
  group.goal = goal;
  group.is_asked_for = true;
  group.drain_until = parts_.clock.now() + drain_limit_;
  group.reason = goal == GroupGoal::Drain ? "drained" : "started again by an operator";
  group.restart_at.reset();
  parts_.signal.change();
}

void DecoderWorkers::drain(std::size_t index) {
  if (groups_[index].goal != GroupGoal::Drain) begin_drain(index, GroupGoal::Drain);
}

// What was in its way counts no more: an operator says that it is worth a try.
void DecoderWorkers::start_soon(std::size_t index) {
  auto& group = groups_[index];
  group.goal = GroupGoal::Serve;
  group.state = State::Ended;
  group.is_asked_for = true;
  group.forgive_starts();
  group.memory.reset();
  group.ends_for_memory = false;
  group.restart_at = parts_.clock.now();
  load_error_.reset();
  parts_.signal.change();
}

void DecoderWorkers::resume(std::size_t index) {
  auto& group = groups_[index];
  if (group.goal != GroupGoal::Drain || stop_by_) return;
  if (!group.is_running()) return start_soon(index);
  if (group.end_by) return begin_drain(index, GroupGoal::Restart);  // once it has ended
  group.goal = GroupGoal::Serve;
  group.is_asked_for = false;
  group.reason.clear();
  parts_.signal.change();
}

void DecoderWorkers::restart(std::size_t index) {
  auto& group = groups_[index];
  if (stop_by_ || group.goal == GroupGoal::Restart) return;
  if (group.goal == GroupGoal::Drain) return resume(index);
  if (!group.is_running()) return start_soon(index);
  const bool is_ending = group.state == State::Ended || group.state == State::Failed;
  begin_drain(index, GroupGoal::Restart);
  if (!is_ending) return;
  // It has nothing to finish, and should be gone already.
  group.state = State::Ended;
  group.forgive_starts();
  load_error_.reset();
  parts_.processes.end(index, GroupEnding::Kill);
}

}  // namespace muster
