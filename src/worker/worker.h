#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/inbox.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/encoder.h"
#include "engine/ops/lane_team.h"
#include "net/frame.h"
#include "wire/generation_messages.h"
#include "wire/messages.h"
#include "wire/shown_models.h"
#include "worker/decoder_lane.h"
#include "worker/lane_queue.h"
#include "worker/memory_notices.h"

namespace muster {

/// The program that owns one device: greets, loads the models that it is told, and turns batches of
/// any of them into rows, a lane (one thread) per CPU or two for a GPU, until the parent's end of
/// the socket closes. Lanes of CPUs without a batch help those that have one (lane_queue.h).
///
/// Owner: main. Threads: `run` reads on the calling thread, which also computes a small batch that
/// was announced while the only lane is idle; one thread loads, so that batches go on meanwhile;
/// the lanes write their answers under a lock.
class Worker {
 public:
  /// models_argument: where the names of the loaded models are shown (shown_models.h); may be
  /// nullptr.
  Worker(UniqueFd socket, DeviceKind device, char* models_argument = nullptr);
  ~Worker();

  /// Serves until the end of the stream.
  ///
  /// Errors: Unavailable when the parent is gone, Corrupt when it does not speak the protocol.
  Status run();

 private:
  struct LoadedModel {
    explicit LoadedModel(std::unique_ptr<const engine::Encoder> loaded)
        : encoder(std::move(loaded)), memory_notices(encoder->pass_tokens()) {}

    const std::unique_ptr<const engine::Encoder> encoder;
    MemoryNotices memory_notices;
  };
  using Model = std::shared_ptr<LoadedModel>;

  struct Job {
    std::uint64_t id = 0;
    Model model;  // lives until its last batch is answered
    Batch batch;
  };

  Status on_frame(const FrameHeader& header, std::span<const std::byte> payload);
  Status on_load(Load load);
  Status on_unload(const Unload& unload);
  Status on_batch(std::uint64_t id, Batch batch, bool was_expected);
  Status on_probe(const Probe& probe);
  Status on_probe_decoder(const ProbeDecoder& probe);
  void await_expected();
  Status on_load_decoder(LoadDecoder load);
  Status on_generate(std::uint64_t id, Generate request);
  Status on_compute_test(const ComputeTest& test);
  std::size_t lane_count() const;
  void start_lanes(const std::vector<std::uint32_t>& cpus);
  void run_loader();
  Status load_model(const Load& load);
  bool put_model(ModelId id, const Model& model);
  Status fail_load(ModelId id, const Error& error);
  void run_lane(std::size_t number);
  void end_if_device_is_lost(const Error& error) const;
  Status answer(const Job& job, std::vector<float>& rows, engine::LaneSeat& seat);
  Status send(MessageType type, std::uint64_t id,
              std::span<const std::span<const std::byte>> parts);
  Status send_error(std::uint64_t id, const Error& error);

  const UniqueFd socket_;
  const DeviceKind device_;
  ShownModels shown_models_;
  bool is_batch_expected_ = false;  // this and the next two are the reader's own
  bool is_reader_lane_ = false;
  std::vector<float> expected_rows_;
  Mutex write_mutex_;  // keeps the frames of several lanes apart
  Mutex models_mutex_;
  std::map<ModelId, Model> models_ MUSTER_GUARDED_BY(models_mutex_);  // null: it waits or loads
  std::vector<std::uint32_t> cpus_;  // set before the lanes and the loader start
  std::unique_ptr<engine::LaneTeam> team_;
  std::unique_ptr<LaneQueue<Job>> jobs_;
  std::unique_ptr<Inbox<Load>> loads_;
  std::jthread loader_;
  std::vector<std::jthread> lanes_;
  ModelId decoder_id_ = 0;  // of the lane; the reader's own
  std::unique_ptr<DecoderLane> decoder_lane_;
};

}  // namespace muster
