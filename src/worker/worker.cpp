// One thread reads frames and the lanes compute; a loader opens models, so that batches of other
// models go on meanwhile. A lane holds a reference to the model of its batch, so an unload never
// waits and frees nothing that is in use. A frame that breaks the protocol ends the worker: the
// parent starts it again in a known state. When the parent is gone, writing fails and every thread
// ends by itself.

#include "worker/worker.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/build_info.h"
#include "engine/gpu.h"
#include "net/frame_channel.h"
#include "spec/row_blocks.h"
#include "worker/compute_product.h"
#include "worker/decoder_probe.h"
#include "worker/pinning.h"
#include "worker/probe.h"

namespace muster {
namespace {

// Beside two batches a lane the parent may send a canary of each model at once. Both limits are far
// above what a device holds; a parent that passes them does not keep to the protocol.
constexpr std::size_t kCanariesMax = 256;
constexpr std::size_t kLoadsMax = 256;

// A query, which is computed in milliseconds: for so long the reader may be deaf.
constexpr std::size_t kTokensOnReaderMost = 512;

template <typename Element>
std::span<const std::byte> bytes_of(const std::vector<Element>& values) {
  return std::as_bytes(std::span(values));
}

// Leaves the core's other hardware thread its share: a thread that polled without pauses made what
// the other one computed take 3.7 ms instead of 2.5 (measured on Zen 4).
void pause_shortly() {
  constexpr int kPauses = 32;  // 0.8 us on Zen 4, where one takes 64 cycles
  for (int i = 0; i < kPauses; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

// The parent gives what it had to another worker and starts a new one. Its words are the reason
// that is shown, so the first line says what happened.
[[noreturn]] void end_process(std::string_view what, const Error& error, ErrorKind kind) {
  const auto line = error.message.substr(0, error.message.find('\n'));
  fmt::print(stderr, "muster-worker: {}: {}\n", what, line);
  std::fflush(stderr);
  ::_exit(exit_code(kind));
}

[[noreturn]] void end_without_device(const Error& error) {
  end_process("the GPU cannot be used any more by this process", error, ErrorKind::Unavailable);
}

}  // namespace

Worker::Worker(UniqueFd socket, DeviceKind device, char* models_argument)
    : socket_(std::move(socket)), device_(device), shown_models_(models_argument) {}

Worker::~Worker() {
  if (jobs_) jobs_->close();
  if (loads_) loads_->close();
}

Status Worker::run() {
  const auto hello = encode(
      Hello{.build = std::string(build_name()), .engine_class = engine::engine_class(device_)});
  MUSTER_TRY(send(MessageType::Hello, 0, std::array{bytes_of(hello)}));
  return read_frames(
      socket_.get(),
      [this](const FrameHeader& header, std::span<const std::byte> payload) {
        return on_frame(header, payload);
      },
      [this] { await_expected(); });
}

// Its core wakes while the parent still parses and tokenises. Whoever else wants the core has it.
void Worker::await_expected() {
  if (!is_batch_expected_) return;
  const auto until = std::chrono::steady_clock::now() + kExpectTime;
  char first = 0;
  while (::recv(socket_.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN &&
         std::chrono::steady_clock::now() < until) {
    ::sched_yield();
    pause_shortly();
  }
}

Status Worker::on_frame(const FrameHeader& header, std::span<const std::byte> payload) {
  const bool was_expected = std::exchange(is_batch_expected_, false);
  switch (static_cast<MessageType>(header.type)) {
    case MessageType::Probe:
      return on_probe(MUSTER_TRY(decode_probe(payload)));
    case MessageType::Load:
      return on_load(MUSTER_TRY(decode_load(payload)));
    case MessageType::Unload:
      return on_unload(MUSTER_TRY(decode_unload(payload)));
    case MessageType::Batch:
      return on_batch(header.id, MUSTER_TRY(decode_batch(payload)), was_expected);
    case MessageType::Expect:
      is_batch_expected_ = true;
      return Done{};
    case MessageType::ComputeTest:
      return on_compute_test(MUSTER_TRY(decode_compute_test(payload)));
    case MessageType::LoadDecoder:
      return on_load_decoder(MUSTER_TRY(decode_load_decoder(payload)));
    case MessageType::ProbeDecoder:
      return on_probe_decoder(MUSTER_TRY(decode_probe_decoder(payload)));
    case MessageType::Generate:
      return on_generate(header.id, MUSTER_TRY(decode_generate(payload)));
    case MessageType::Cancel:
      if (decoder_lane_) decoder_lane_->cancel(header.id);
      return Done{};
    case MessageType::Hello:
    case MessageType::Verdict:
    case MessageType::Ready:
    case MessageType::Rows:
    case MessageType::Failed:
    case MessageType::ComputeResult:
    case MessageType::LoadFailed:
    case MessageType::DecoderReady:
    case MessageType::Tokens:
    case MessageType::Finished:
    case MessageType::StepBegun:
    case MessageType::CacheUse:
    case MessageType::DecoderVerdict:
      break;
  }
  return Error{ErrorKind::Corrupt, "unknown message: type " + std::to_string(header.type)};
}

Status Worker::on_probe(const Probe& probe) {
  pin_to(std::span(probe.cpus).first(probe.cpus.empty() ? 0 : 1));
  // Without its library the measuring says why.
  const bool has_gpu = runs_as_gpu(device_) && engine::open_gpu(device_);
  engine::enter_lane(has_gpu ? device_ : DeviceKind::Cpu);
  const auto verdict = measure_precisions(probe);
  // A plan counts the workspaces of the lanes and the loader: this thread's stream computes no
  // more.
  if (has_gpu && !jobs_) engine::release_workspaces(device_);
  if (!verdict) return send_error(0, verdict.error());
  const auto payload = encode(*verdict);
  return send(MessageType::Verdict, 0, std::array{bytes_of(payload)});
}

// On this thread, which its parent asks nothing else of.
Status Worker::on_probe_decoder(const ProbeDecoder& probe) {
  pin_to(std::span(probe.cpus).first(probe.cpus.empty() ? 0 : 1));
  const auto verdict = measure_decoder(probe, device_);
  if (!verdict) return send_error(0, verdict.error());
  const auto payload = encode(*verdict);
  return send(MessageType::DecoderVerdict, 0, std::array{bytes_of(payload)});
}

Status Worker::on_compute_test(const ComputeTest& test) {
  const auto result = run_compute_test(test);
  if (!result) return send_error(0, result.error());
  const auto payload = encode(*result);
  return send(MessageType::ComputeResult, 0, std::array{bytes_of(payload)});
}

// The id is entered before the model is there, so that an unload which arrives during the load can
// take it out again.
Status Worker::on_load(Load load) {
  if (!jobs_) start_lanes(load.cpus);
  if (load.cpus != cpus_) {
    return fail_load(load.model_id, {ErrorKind::InvalidArgument,
                                     "a worker has one set of lanes for all of its models"});
  }
  {
    const MutexLock lock(models_mutex_);
    if (!models_.emplace(load.model_id, nullptr).second) {
      return Error{ErrorKind::Corrupt,
                   fmt::format("the model was asked for twice: {}", load.model_id)};
    }
  }
  return loads_->push(std::move(load));
}

// An id that is not there is no fault: a load that failed has removed it already.
Status Worker::on_unload(const Unload& unload) {
  Model last;  // freed outside of the lock
  const MutexLock lock(models_mutex_);
  const auto found = models_.find(unload.model_id);
  if (found == models_.end()) return Done{};
  last = std::move(found->second);
  models_.erase(found);
  shown_models_.remove(unload.model_id);
  return Done{};
}

// The lane gets the model itself and not its id, so an unload cannot take it away meanwhile.
Status Worker::on_batch(std::uint64_t id, Batch batch, bool was_expected) {
  Model model;
  {
    const MutexLock lock(models_mutex_);
    const auto found = models_.find(batch.model_id);
    if (found != models_.end()) model = found->second;
  }
  if (!model) {
    return send_error(
        id, {ErrorKind::NotFound, fmt::format("the model is not loaded: {}", batch.model_id)});
  }
  Job job{.id = id, .model = std::move(model), .batch = std::move(batch)};
  // Nothing was in flight when it was announced, so the only lane is idle and this thread is on its
  // core: waking the lane would take 30 us longer than reading the next frame can wait.
  const bool is_small = job.batch.ids.size() <= kTokensOnReaderMost;
  if (was_expected && is_small && device_ == DeviceKind::Cpu && lanes_.size() == 1) {
    if (!std::exchange(is_reader_lane_, true)) engine::enter_lane();
    engine::LaneSeat alone;
    return answer(job, expected_rows_, alone);
  }
  return jobs_->push(std::move(job));
}

// A worker has one decoder: it takes the whole device.
Status Worker::on_load_decoder(LoadDecoder load) {
  const auto id = load.model_id;
  if (decoder_lane_) {
    return fail_load(id, {ErrorKind::Unsupported, "a worker has one decoder at a time"});
  }
  // Where a frame cannot be sent the parent is gone; the reader sees it too.
  const auto tell = [this](MessageType type, std::uint64_t of, const std::vector<std::byte>& what) {
    (void)send(type, of, std::array{bytes_of(what)});
  };
  DecoderLaneEvents events;
  events.on_ready = [this, tell, source = load.source](const DecoderReady& ready) {
    shown_models_.add(ready.model_id, source);
    tell(MessageType::DecoderReady, 0, encode(ready));
  };
  events.on_load_failed = [this, tell, id](const Error& error) {
    end_if_device_is_lost(error);
    tell(MessageType::LoadFailed, 0, encode(LoadFailed{id, error}));
  };
  events.on_step_begun = [tell](std::uint32_t token_count) {
    tell(MessageType::StepBegun, 0, encode(StepBegun{token_count}));
  };
  events.on_cache_use = [tell](const CacheUse& use) {
    tell(MessageType::CacheUse, 0, encode(use));
  };
  events.on_tokens = [tell](const Tokens& tokens) { tell(MessageType::Tokens, 0, encode(tokens)); };
  events.on_finished = [tell](SequenceId of, FinishReason reason) {
    tell(MessageType::Finished, of, encode(Finished{reason}));
  };
  events.on_failed = [tell](SequenceId of, const Error& error) {
    tell(MessageType::Failed, of, encode(Failed{error}));
  };
  events.on_broken = [](const Error& error) {
    end_process("a step of the decoder could not be computed", error, error.kind);
  };
  events.on_cancelled = [tell](SequenceId of) { tell(MessageType::Cancel, of, {}); };
  decoder_id_ = id;
  decoder_lane_ = std::make_unique<DecoderLane>(std::move(load), device_, std::move(events));
  return Done{};
}

Status Worker::on_generate(std::uint64_t id, Generate request) {
  if (!decoder_lane_ || request.model_id != decoder_id_) {
    return send_error(
        id, {ErrorKind::NotFound, fmt::format("the decoder is not loaded: {}", request.model_id)});
  }
  decoder_lane_->generate(id, std::move(request));
  return Done{};
}

// A lane for each core, each pinned to its own, so lanes never move and their caches stay warm.
std::size_t Worker::lane_count() const {
  return runs_as_gpu(device_) ? kGpuLanes : std::max<std::size_t>(1, cpus_.size());
}

void Worker::start_lanes(const std::vector<std::uint32_t>& cpus) {
  cpus_ = cpus;
  pin_to(cpus);
  const std::size_t lane_count = this->lane_count();
  // A GPU computes by itself: its lanes have nothing to share.
  team_ = std::make_unique<engine::LaneTeam>(
      lane_count, runs_as_gpu(device_) ? engine::kNothingShared : engine::SharingLimits());
  jobs_ = std::make_unique<LaneQueue<Job>>(*team_, 2 * lane_count + kCanariesMax);
  loads_ = std::make_unique<Inbox<Load>>(kLoadsMax);
  loader_ = std::jthread([this] { run_loader(); });
  for (std::size_t i = 0; i < lane_count; ++i) {
    lanes_.emplace_back([this, i] { run_lane(i); });
  }
}

// One loader for all models: two loads at once would double the peak of memory.
void Worker::run_loader() {
  pin_to(cpus_);
  while (const auto load = loads_->take()) {
    if (!load_model(*load)) return;  // the parent is gone; the reader sees it too
  }
}

Status Worker::load_model(const Load& load) {
  const auto options = encoder_options(load.model, load.precision);
  if (!options) return fail_load(load.model_id, options.error());
  auto encoder = engine::Encoder::load(*options);
  if (!encoder) {
    end_if_device_is_lost(encoder.error());
    return fail_load(load.model_id, encoder.error());
  }
  const auto model = std::make_shared<LoadedModel>(*std::move(encoder));
  // Before Ready is sent, since a batch may follow at once.
  if (!put_model(load.model_id, model)) {
    return fail_load(load.model_id,
                     {ErrorKind::Cancelled, "the model was unloaded while it was loading"});
  }
  shown_models_.add(load.model_id, load.model.model_folder);
  const auto ready = encode(Ready{.model_id = load.model_id,
                                  .dim = model->encoder->dim(),
                                  .lane_count = static_cast<std::uint32_t>(lane_count()),
                                  .weights_bytes = model->encoder->weights_bytes(),
                                  .load_peak_bytes = model->encoder->load_peak_bytes()});
  return send(MessageType::Ready, 0, std::array{bytes_of(ready)});
}

// False: it was unloaded while it was loading. The worker must not bring it back.
bool Worker::put_model(ModelId id, const Model& model) {
  const MutexLock lock(models_mutex_);
  const auto found = models_.find(id);
  if (found == models_.end()) return false;
  found->second = model;
  return true;
}

// The id is free again, so the parent may ask for the model once more.
Status Worker::fail_load(ModelId id, const Error& error) {
  {
    const MutexLock lock(models_mutex_);
    models_.erase(id);
  }
  const auto payload = encode(LoadFailed{id, error});
  return send(MessageType::LoadFailed, 0, std::array{bytes_of(payload)});
}

void Worker::run_lane(std::size_t number) {
  if (number < cpus_.size()) pin_to(std::array{cpus_[number]});
  std::vector<float> rows;
  engine::LaneSeat seat(*team_, number);
  // A CPU's lane may help before it has a job of its own; a GPU is open when a model is there.
  bool has_entered = !runs_as_gpu(device_);
  if (has_entered) engine::enter_lane();
  while (const auto job = jobs_->take(number)) {
    if (!std::exchange(has_entered, true)) engine::enter_lane(device_);
    if (!answer(*job, rows, seat)) return;  // the parent is gone; the reader sees it too
  }
}

// Only an unexpected error may be a lost device: what names texts, memory or a precision is none.
void Worker::end_if_device_is_lost(const Error& error) const {
  if (!runs_as_gpu(device_) || error.kind != ErrorKind::Internal) return;
  if (engine::open_gpu(device_) && !engine::is_gpu_usable(device_)) end_without_device(error);
}

// Only the engine's own time is reported; what the frame costs is the parent's to see. It is the
// time of all lanes that took part, as one of them alone would have taken: what batches cost is
// learnt from it, and must not depend on how many lanes happened to be idle.
Status Worker::answer(const Job& job, std::vector<float>& rows, engine::LaneSeat& seat) {
  const auto begin = std::chrono::steady_clock::now();
  const auto& encoder = *job.model->encoder;
  const auto tokens_at_begin = encoder.pass_tokens();
  rows.resize(job.batch.lengths.size() * encoder.dim());
  const auto encoded = encoder.encode({.ids = job.batch.ids,
                                       .lengths = job.batch.lengths,
                                       .first_segments = job.batch.first_segments},
                                      rows, seat);
  const auto end = std::chrono::steady_clock::now();
  const auto helped = seat.take_helped();
  auto& memory = job.model->memory_notices;
  const auto tokens_at_end = encoder.pass_tokens();
  if (const auto notice = memory.look(tokens_at_end, end)) {
    fmt::print(stderr, "muster-worker: {}\n", *notice);
  }
  if (!encoded) {
    end_if_device_is_lost(encoded.error());
    return send_error(job.id, encoded.error());
  }
  const std::chrono::nanoseconds elapsed = end - begin + helped;
  const auto at_once = std::min(tokens_at_begin, tokens_at_end);
  const auto head = encode_rows_head({.engine_ns = static_cast<std::uint64_t>(elapsed.count()),
                                      .activation_peak_bytes = encoder.activation_peak_bytes(),
                                      .is_cut = memory.was_cut(job.batch.ids.size(), at_once),
                                      .dim = encoder.dim(),
                                      .rows = {}});
  return send(MessageType::Rows, job.id, std::array{bytes_of(head), bytes_of(rows)});
}

Status Worker::send(MessageType type, std::uint64_t id,
                    std::span<const std::span<const std::byte>> parts) {
  const MutexLock lock(write_mutex_);
  return write_frame(socket_.get(), static_cast<std::uint8_t>(type), id, parts);
}

Status Worker::send_error(std::uint64_t id, const Error& error) {
  const auto payload = encode(Failed{error});
  return send(MessageType::Failed, id, std::array{bytes_of(payload)});
}

}  // namespace muster
