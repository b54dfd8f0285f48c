#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordinator/decoder_streams.h"
#include "coordinator/decoder_workers.h"
#include "coordinator/group_runner.h"
#include "coordinator/step_signal.h"

namespace muster {

/// The workers that generate with one decoder, and the streams that they continue: the loop of two
/// owners, DecoderWorkers (lives) and DecoderStreams (who continues what). When a worker dies or is
/// drained, its streams go to another one, or to the next on its device, with the prompt and every
/// token that has come.
///
/// Threads: not thread-safe; owned by the loop that calls `step`.
class DecoderFleet final : private DecoderWorkerClient {
 public:
  /// Starts the workers; the decoder loads while the caller goes on.
  ///
  /// Errors: those of WorkerGroup::start.
  static Result<std::unique_ptr<DecoderFleet>> start(DecoderFleetOptions options,
                                                     DecoderFleetEvents events, const Clock& clock);

  /// Its id in what is told of it.
  StreamId submit(StreamRequest request) { return streams_.submit(std::move(request)); }

  /// Nothing more is told of it. Nothing for an id that has ended. True where a worker had it at
  /// some time, and so may have computed at it.
  bool cancel(StreamId id) { return streams_.cancel(id); }

  /// Readable when `step` has something to do.
  int wait_fd() const { return runner_.wait_fd(); }

  /// When it has, though nothing is readable.
  TimePoint next_deadline() const;

  /// Handles what has happened; never waits.
  ///
  /// Errors: what makes all further work impossible: a worker of another build (Unsupported), a
  /// source that has changed where that is fatal (Corrupt).
  Status step();

  /// What an operator asks for, device by device, and the end of all.
  DecoderWorkers& workers() { return workers_; }

  bool is_ready() const { return workers_.is_ready(); }
  /// A stream that is submitted now will be computed, as far as is known.
  bool can_work() const { return workers_.can_work(); }
  /// Why, where it will not.
  Error cannot_work_error() const { return workers_.cannot_work_error(); }
  bool is_to_rest() const { return workers_.is_to_rest(); }
  bool is_stopped() const { return workers_.is_stopped(); }
  /// Tokens of a prompt and its reply at most; 0: no worker has been ready yet.
  std::uint32_t length_max() const { return workers_.length_max(); }
  std::uint64_t weights_bytes() const { return workers_.weights_bytes(); }
  const std::string& decoder_class() const { return workers_.decoder_class(); }
  /// The group that has a stream; nullopt for one that waits or has ended.
  std::optional<std::size_t> group_of(StreamId id) const { return streams_.group_of(id); }
  /// Since when one waits, for the first time or again; nullopt for one that a worker has, or that
  /// has ended.
  std::optional<TimePoint> waits_since(StreamId id) const { return streams_.waits_since(id); }
  std::size_t waiting_count() const { return streams_.waiting_count(); }
  std::size_t running_count() const { return streams_.running_count(); }
  /// Streams that the workers can be given within a step: that many of those that wait soon do not.
  std::size_t free_count() const { return streams_.free_count(); }
  /// Predicted time until so many places have come free, where none is; nullopt: nothing is known.
  std::optional<Duration> wait_for_places(std::size_t count) const {
    return streams_.wait_for_places(count);
  }
  std::vector<DecoderGroupView> groups() const;

 private:
  DecoderFleet(DecoderFleetOptions options, DecoderFleetEvents events, const Clock& clock);

  // DecoderWorkerClient: for the streams, which are made after the workers.
  Status on_stream_frame(std::size_t group, const FrameHeader& header,
                         std::span<const std::byte> payload) override {
    return streams_.on_stream_frame(group, header, payload);
  }
  std::size_t on_lost(std::size_t group, const DecoderLoss& loss) override {
    return streams_.on_lost(group, loss);
  }
  std::size_t owed_count(std::size_t group) const override { return streams_.owed_count(group); }

  const DecoderFleetOptions options_;
  const DecoderFleetEvents events_;
  const Clock& clock_;
  StepSignal signal_;
  GroupRunner runner_;
  DecoderWorkers workers_;
  DecoderStreams streams_;
};

}  // namespace muster
