#include "worker/worker.h"

#include <array>
#include <chrono>
#include <utility>

#include "base/build_info.h"
#include "engine/memory_use.h"
#include "net/frame_channel.h"
#include "worker/compute_test.h"
#include "worker/pinning.h"
#include "worker/probe.h"

namespace muster {
namespace {

template <typename Element>
std::span<const std::byte> bytes_of(const std::vector<Element>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

Worker::Worker(UniqueFd socket, DeviceKind device) : socket_(std::move(socket)), device_(device) {}

Worker::~Worker() {
  if (jobs_) jobs_->close();
}

Status Worker::run() {
  const auto hello = encode(
      Hello{.build = std::string(build_name()), .engine_class = engine::engine_class(device_)});
  MUSTER_TRY(send(MessageType::Hello, 0, std::array{bytes_of(hello)}));
  return read_frames(socket_.get(),
                     [this](const FrameHeader& header, std::span<const std::byte> payload) {
                       return on_frame(header, payload);
                     });
}

Status Worker::on_frame(const FrameHeader& header, std::span<const std::byte> payload) {
  switch (static_cast<MessageType>(header.type)) {
    case MessageType::Probe:
      return on_probe(MUSTER_TRY(decode_probe(payload)));
    case MessageType::Load:
      return on_load(MUSTER_TRY(decode_load(payload)));
    case MessageType::Batch:
      if (!jobs_) return Error{ErrorKind::Corrupt, "a batch came before the model"};
      return jobs_->push({.id = header.id, .batch = MUSTER_TRY(decode_batch(payload))});
    case MessageType::ComputeTest:
      return on_compute_test(MUSTER_TRY(decode_compute_test(payload)));
    case MessageType::Hello:
    case MessageType::Verdict:
    case MessageType::Ready:
    case MessageType::Rows:
    case MessageType::Failed:
    case MessageType::ComputeResult:
    case MessageType::Unload:
    case MessageType::LoadFailed:
      break;
  }
  return Error{ErrorKind::Corrupt, "unknown message: type " + std::to_string(header.type)};
}

Status Worker::on_probe(const Probe& probe) {
  pin_to(std::span(probe.cpus).first(probe.cpus.empty() ? 0 : 1));
  engine::enter_lane();
  const auto verdict = measure_precisions(probe);
  if (!verdict) return send_error(0, verdict.error());
  const auto payload = encode(*verdict);
  return send(MessageType::Verdict, 0, std::array{bytes_of(payload)});
}

Status Worker::on_compute_test(const ComputeTest& test) {
  const auto result = run_compute_test(test);
  if (!result) return send_error(0, result.error());
  const auto payload = encode(*result);
  return send(MessageType::ComputeResult, 0, std::array{bytes_of(payload)});
}

Status Worker::on_load(const Load& load) {
  if (encoder_) return Error{ErrorKind::Corrupt, "the model was asked for twice"};
  pin_to(load.cpus);
  engine::enter_lane();
  const auto options = encoder_options(load.model, load.precision);
  const auto fail = [&](const Error& error) {
    const auto payload = encode(LoadFailed{load.model_id, error});
    return send(MessageType::LoadFailed, 0, std::array{bytes_of(payload)});
  };
  if (!options) return fail(options.error());
  auto encoder = engine::Encoder::load(*options);
  if (!encoder) return fail(encoder.error());
  encoder_ = *std::move(encoder);
  engine::restart_memory_peak();
  bytes_at_load_ = engine::memory_use().live_bytes;

  const std::size_t lane_count = std::max<std::size_t>(1, load.cpus.size());
  jobs_ = std::make_unique<Inbox<Job>>(2 * lane_count);  // one running and one waiting a lane
  for (std::size_t i = 0; i < lane_count; ++i) {
    const bool is_pinned = !load.cpus.empty();
    lanes_.emplace_back(
        [this, cpu = is_pinned ? load.cpus[i] : 0, is_pinned] { run_lane(cpu, is_pinned); });
  }
  const auto ready = encode(Ready{.model_id = load.model_id,
                                  .dim = encoder_->dim(),
                                  .lane_count = static_cast<std::uint32_t>(lane_count),
                                  .weights_bytes = encoder_->weights_bytes(),
                                  .load_peak_bytes = encoder_->load_peak_bytes()});
  return send(MessageType::Ready, 0, std::array{bytes_of(ready)});
}

void Worker::run_lane(std::uint32_t cpu, bool is_pinned) {
  if (is_pinned) pin_to(std::array{cpu});
  engine::enter_lane();
  std::vector<float> rows;
  while (const auto job = jobs_->take()) {
    if (!answer(*job, rows)) return;  // the parent is gone; the reader sees it too
  }
}

Status Worker::answer(const Job& job, std::vector<float>& rows) {
  const auto begin = std::chrono::steady_clock::now();
  rows.resize(job.batch.lengths.size() * encoder_->dim());
  const auto encoded = encoder_->encode({.ids = job.batch.ids, .lengths = job.batch.lengths}, rows);
  if (!encoded) return send_error(job.id, encoded.error());
  const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - begin;
  const auto peak_bytes =
      device_ == DeviceKind::Cpu ? engine::memory_use().peak_bytes - bytes_at_load_ : 0;
  const auto head = encode_rows_head({.engine_ns = static_cast<std::uint64_t>(elapsed.count()),
                                      .activation_peak_bytes = peak_bytes,
                                      .dim = encoder_->dim(),
                                      .rows = {}});
  return send(MessageType::Rows, job.id, std::array{bytes_of(head), bytes_of(rows)});
}

Status Worker::send(MessageType type, std::uint64_t id,
                    std::span<const std::span<const std::byte>> parts) {
  const std::lock_guard lock(write_mutex_);
  return write_frame(socket_.get(), static_cast<std::uint8_t>(type), id, parts);
}

Status Worker::send_error(std::uint64_t id, const Error& error) {
  const auto payload = encode(Failed{error});
  return send(MessageType::Failed, id, std::array{bytes_of(payload)});
}

}  // namespace muster
