#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordinator/group_runner.h"
#include "coordinator/prefix_places.h"
#include "coordinator/restart_policy.h"
#include "coordinator/step_signal.h"
#include "spec/device.h"
#include "spec/generation.h"
#include "wire/generation_messages.h"

namespace muster {

using StreamId = std::uint64_t;

/// What is to be continued.
struct StreamRequest {
  std::vector<std::uint32_t> ids = {};
  std::uint32_t token_limit = 0;
  std::vector<std::uint32_t> stop_ids = {};
  std::uint64_t prefix_scope = 0;  // it shares keys and values within this alone
  SamplingOptions sampling = {};
};

/// What becomes of streams, told from within `step`. Every token is told once, in order. Each call
/// may submit and cancel.
struct DecoderFleetEvents {
  /// A worker has begun with it, before any token; so many of what was known of it are not
  /// computed, since their keys and values were there. Again where it goes on elsewhere.
  std::function<void(StreamId, std::uint32_t cached_count)> on_begun;
  std::function<void(StreamId, const GeneratedToken&)> on_token;
  std::function<void(StreamId, FinishReason)> on_finished;
  /// was_given: a worker had it at some time, and so may have computed at it.
  std::function<void(StreamId, const Error&, bool was_given)> on_failed;
  std::function<void()> on_change;  // a worker is ready, or is not any more
  std::function<void(const std::string&, std::size_t group)> on_notice;  // for people
};

struct DecoderFleetOptions {
  std::vector<Device> devices;  // a worker each, with all cores of its device
  std::filesystem::path worker_program;
  std::filesystem::path torch_root;
  std::string build;   // what a worker's Hello must say
  std::string source;  // a GGUF file or a folder
  DecoderPrecision precision = DecoderPrecision::Own;
  std::uint64_t cache_bytes = 0;    // for keys and values, of each worker
  std::uint32_t streams_most = 32;  // that one worker has at once
  bool has_prefix_cache = true;     // streams begin behind what earlier ones have computed
  /// A worker that owes an answer and says nothing for so long, and half a second more for each
  /// token that its next step may have to compute, counts as hung: slower than that is of no use.
  Duration silence_most = std::chrono::seconds(60);
  /// From its greeting until the decoder is loaded.
  Duration load_most = std::chrono::seconds(900);
};

/// One worker as users see it.
struct DecoderGroupView {
  enum class State : std::uint8_t {
    Loading,
    Ready,
    Ended,   // it is started again
    Failed,  // it cannot load the decoder
  };
  State state = State::Loading;
  std::string reason = {};  // of Ended and Failed
  std::size_t stream_count = 0;
  std::uint32_t restart_count = 0;
};

/// The workers that generate with one decoder, and the streams that they continue. Prompts and
/// tokens are owned here: when a worker dies, its streams go to another one, or to the next on its
/// device, with the prompt and every token that has come; what follows is what would have come,
/// since sampling depends on seed, choice and position alone.
///
/// A stream goes to the ready worker that has the fewest, and of several such to the one that was
/// given the longest beginning of it before; where each has `streams_most`, it waits in the order
/// of arrival. A worker's death by its own fault is a strike against those that had got no token
/// since they were given to it; one with a strike runs alone until its next token, and fails at the
/// third, so that a prompt which kills workers takes no other stream with it.
///
/// A worker that ends before it has loaded is started again, as any other; where no worker is
/// ready and each has failed so three times in a row, streams fail until one is ready again.
/// A worker that loads another model than the first one did, since the file has changed, is ended.
///
/// Threads: not thread-safe; owned by the loop that calls `step`.
class DecoderFleet final : private GroupProcessEvents {
 public:
  /// Starts the workers; the decoder loads while the caller goes on.
  ///
  /// Errors: those of WorkerGroup::start.
  static Result<std::unique_ptr<DecoderFleet>> start(DecoderFleetOptions options,
                                                     DecoderFleetEvents events, const Clock& clock);
  ~DecoderFleet() override;

  /// Its id in what is told of it.
  StreamId submit(StreamRequest request);

  /// Nothing more is told of it. Nothing for an id that has ended. True where a worker had it at
  /// some time, and so may have computed at it.
  bool cancel(StreamId id);

  /// Readable when `step` has something to do.
  int wait_fd() const { return runner_.wait_fd(); }

  /// When it has, though nothing is readable.
  TimePoint next_deadline() const;

  /// Handles what has happened; never waits.
  ///
  /// Errors: what makes all further work impossible: a worker of another build (Unsupported).
  Status step();

  bool is_ready() const;
  /// A stream that is submitted now will be computed, as far as is known.
  bool can_work() const;
  /// Tokens of a prompt and its reply at most; 0: no worker has been ready yet.
  std::uint32_t length_max() const { return length_max_; }
  std::uint64_t weights_bytes() const { return weights_bytes_; }
  const std::string& decoder_class() const { return decoder_class_; }
  std::size_t waiting_count() const { return waiting_.size(); }
  std::size_t running_count() const { return streams_.size() - waiting_.size(); }
  std::vector<DecoderGroupView> groups() const;

 private:
  using State = DecoderGroupView::State;
  static constexpr std::uint32_t kFailedStartsMost = 3;

  struct Stream {
    Generate request;                  // grows with every token
    std::optional<std::size_t> group;  // that has it
    bool has_token = false;            // since it was given to that
    bool was_given = false;            // to any
    std::uint32_t strikes = 0;
    std::uint32_t death_count = 0;  // of workers that had it, each by its own fault
  };
  struct Group {
    State state = State::Loading;
    std::string reason;
    std::set<StreamId> streams;
    /// Cancelled ones that the worker has not answered for yet, with their tokens. They count as
    /// streams: a worker that is hung is not given more and more, and is found.
    std::map<StreamId, std::size_t> owed;
    RestartPolicy restarts{false};
    TimePoint heard_at{};
    std::optional<TimePoint> started_at;  // until it greets
    std::optional<TimePoint> restart_at;
    std::optional<TimePoint> end_by;  // its process is to end; looked at then
    bool was_ready = false;           // in this life
    bool was_ever_ready = false;
    bool was_killed = false;               // in this life, for `reason`
    bool is_running = false;               // its process has not been waited for
    std::uint32_t failed_start_count = 0;  // lives in a row that ended before they were ready
    std::uint32_t restart_count = 0;

    std::size_t load() const { return streams.size() + owed.size(); }
  };

  DecoderFleet(DecoderFleetOptions options, DecoderFleetEvents events, const Clock& clock);

  // decoder_fleet.cpp
  Status on_frame(std::size_t group, std::size_t member, const FrameHeader& header,
                  std::span<const std::byte> payload) override;
  Status on_hello(std::size_t group, std::span<const std::byte> payload);
  Status on_decoder_ready(std::size_t group, const DecoderReady& ready);
  Status on_tokens(std::size_t group, const Tokens& message);
  bool take(std::size_t group, StreamId id);
  void settle();
  void give(StreamId id, std::size_t group);
  std::optional<std::size_t> place_for(const Stream& stream,
                                       std::optional<std::size_t> reserved) const;
  std::vector<PrefixKey> keys_of(const Stream& stream) const;
  bool has_suspect(const Group& group) const;
  std::optional<std::size_t> least_busy() const;
  void fail_all_if_none_can_work();
  Error cannot_work_error() const;

  // decoder_fleet_ends.cpp
  Status on_broken(std::size_t group, const Error& error) override;
  void on_stream_end(std::size_t group) override;
  void on_exit(std::size_t group) override;
  void on_line(std::size_t group, const std::string& line) override;
  void on_load_failed(std::size_t group, const Error& error);
  Status start_group(std::size_t group);
  void kill(std::size_t group, const std::string& reason);
  void end_life(std::size_t group, const WorkerDeath& death);
  void lose(std::size_t group, bool is_own_fault, const std::string& reason);
  void check_time(TimePoint now);
  void forgive_pause(TimePoint now);
  std::optional<TimePoint> silent_at(const Group& group) const;

  const DecoderFleetOptions options_;
  const DecoderFleetEvents events_;
  const Clock& clock_;
  StepSignal signal_;
  GroupRunner runner_;
  std::vector<Group> groups_;
  std::map<StreamId, Stream> streams_;
  PrefixPlaces prefixes_;
  std::set<StreamId> waiting_;                               // of these; ids grow with arrival
  std::vector<std::pair<std::size_t, StreamId>> cancelled_;  // whose worker is not told yet
  StreamId next_id_ = 1;
  std::uint32_t length_max_ = 0;
  std::uint32_t vocab_size_ = 0;
  std::uint32_t block_count_ = 0;  // of the cache of the worker that was ready last
  std::uint64_t weights_bytes_ = 0;
  std::string decoder_class_;
  std::optional<Duration> longest_greeting_;
  std::optional<Error> load_error_;
  std::optional<Error> fatal_;
};

}  // namespace muster
