#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordinator/canary_book.h"
#include "coordinator/decoder_canary.h"
#include "coordinator/group_life.h"
#include "coordinator/group_processes.h"
#include "coordinator/memory_wait.h"
#include "coordinator/restart_policy.h"
#include "coordinator/step_signal.h"
#include "coordinator/step_watch.h"
#include "spec/device.h"
#include "spec/generation.h"
#include "wire/generation_messages.h"

namespace muster {

struct DecoderFleetOptions {
  std::vector<Device> devices;  // a worker each, with all cores of its device
  /// Of the devices, those that rest: their workers start when they are resumed.
  std::vector<std::size_t> resting = {};
  std::filesystem::path worker_program;
  std::filesystem::path torch_root;
  std::string build;   // what a worker's Hello must say
  std::string source;  // a GGUF file or a folder
  DecoderPrecision precision = DecoderPrecision::Own;
  KvCacheDtype kv_cache_dtype = KvCacheDtype::Auto;
  std::uint64_t cache_bytes = 0;    // for keys and values, of each worker
  std::uint32_t streams_most = 32;  // that one worker has at once
  /// No worker has more than its share of the streams there are, so that one that is ready later
  /// has some, too: for work with an end. False: what is ready takes what it can.
  bool spreads_streams = false;
  bool has_prefix_cache = true;           // streams begin behind what earlier ones have computed
  std::uint32_t drafted_tokens_most = 0;  // of a stream, as GenerationOptions::drafted_most
  /// A worker gets no stream before it has continued a known prompt as the others of its class.
  bool asks_canary = false;
  std::uint32_t step_tokens_most = LoadDecoder{}.step_tokens_most;  // that a worker computes in one
  /// A worker of another build, before any was ready, ends the fleet. False, for a decoder that is
  /// loaded beside others: it counts as one that cannot load the decoder.
  bool ends_with_other_build = true;
  Duration drain_limit = std::chrono::seconds(30);  // of `drain` and `restart`, at first
  /// A worker that owes an answer and says nothing for so long, and half a second more for each
  /// token of the step that it is at, counts as hung; sooner where its steps were measured
  /// (step_watch.h).
  Duration silence_most = std::chrono::seconds(60);
  /// One whose first load finds no memory is started again by itself, later and later
  /// (memory_wait.h). False, for work with an end: it cannot load the decoder.
  bool waits_for_memory = false;
  /// From its greeting until the decoder is loaded.
  Duration load_most = std::chrono::seconds(900);
  /// The source must stay as it is: where it has changed, `step` ends with Corrupt. Else the worker
  /// that loaded another model is ended, and the others go on.
  bool is_change_fatal = false;
};

/// One worker as users see it.
struct DecoderGroupView {
  enum class State : std::uint8_t {
    Loading,
    Ready,
    Draining,  // ends what it has, to rest or to start again
    Drained,   // by an operator; no process runs
    Ended,     // it is started again
    Failed,    // it cannot load the decoder: an operator may start it again
  };
  State state = State::Loading;
  std::string reason = {};  // of all but Loading and Ready
  /// Of Failed; and Corrupt beside `start_failure` where what it computes is no number.
  std::optional<ErrorKind> failure_kind = {};
  /// How the last of its lives ended, "its worker ended with exit code 3", where it was never ready
  /// and three lives in a row have ended before that, each at its own fault. It is tried again all
  /// the same. Empty: it may well start.
  std::string start_failure = {};
  bool waits_for_memory = false;  // its last load found none, and is tried again or will be
  bool is_to_rest = false;        // an operator has drained it: no streams until it is resumed
  bool is_asked_for = false;      // what it does an operator has asked for
  std::optional<pid_t> pid = {};  // nullopt: it does not run
  std::size_t stream_count = 0;
  std::uint32_t restart_count = 0;
  std::uint64_t token_count = 0;       // that it has chosen, and
  std::uint64_t finished_count = 0;    // streams that came to their end with it
  double cache_use = 0;                // of its cache, what its streams hold: 0 to 1
  std::uint64_t preemption_count = 0;  // streams that gave way to others, in all its lives
  std::uint64_t drafted_count = 0;     // tokens of drafts that it computed, and
  std::uint64_t accepted_count = 0;    // those of them that it has chosen
};

/// What the worker had is for others: it has ended, or will not answer.
struct DecoderLoss {
  bool is_own_fault = false;
  bool is_death = true;  // false: it was told to end
  std::string reason;
};

/// Those whose streams the workers compute: the fleet, for DecoderStreams, or a test's fake.
///
/// Threads: called on the fleet's loop.
class DecoderWorkerClient {
 public:
  virtual ~DecoderWorkerClient() = default;

  /// What a worker that is ready says of its streams.
  ///
  /// Errors: end that worker.
  virtual Status on_stream_frame(std::size_t group, const FrameHeader& header,
                                 std::span<const std::byte> payload) = 0;

  /// How many streams the worker had that others may go on with. Its cache is gone with it.
  virtual std::size_t on_lost(std::size_t group, const DecoderLoss& loss) = 0;

  /// Streams of which the worker owes an answer.
  virtual std::size_t owed_count(std::size_t group) const = 0;
};

/// Owns the lives of the workers of one decoder: starts them, has them load it, notices death and
/// silence, drains and ends them, and starts them again. It knows frames about a worker's life, and
/// nothing of what streams are for.
///
/// A worker that ends before it has loaded is started again, as any other, three times without a
/// pause. One that says that it cannot load the decoder, and never could, is not, until an operator
/// asks for it; for want of memory, which others may let go, it is (`waits_for_memory`). A worker
/// that loads another model than the first one did, since the file has changed, is ended, or ends
/// all work. Where canaries are asked for (decoder_canary.h), one that has loaded is ready once its
/// answer is right; one whose answer is wrong is ended and started again. Where all of them come to
/// what is no number there, time after time, the model is damaged (Corrupt).
///
/// Threads: not thread-safe; owned by the fleet's loop.
class DecoderWorkers final : public GroupProcessEvents {
 public:
  /// What it works with; all of it outlives it.
  struct Parts {
    GroupProcesses& processes;
    DecoderWorkerClient& client;
    StepSignal& signal;
    const Clock& clock;
    std::function<void(const std::string&, std::size_t group)> on_notice;  // for people
  };

  DecoderWorkers(const DecoderFleetOptions& options, Parts parts);

  /// Starts those that are not to rest.
  ///
  /// Errors: those of WorkerGroup::start.
  Status start();

  // What streams see of them.

  std::size_t count() const { return groups_.size(); }
  /// It is ready and to serve.
  bool takes_streams(std::size_t group) const;
  /// It owes an answer and has been silent for so long that another one is the better choice.
  bool is_late(std::size_t group) const;
  /// Those that take streams, or will before long as far as is known.
  std::size_t working_count() const;
  bool can_work() const { return working_count() > 0; }
  /// Why none can.
  Error cannot_work_error() const;
  /// Nothing to one that does not run.
  void send(std::size_t group, MessageType type, std::uint64_t id, std::vector<std::byte> payload);
  /// It had nothing to answer for until now.
  void on_first_given(std::size_t group) { groups_[group].watch.start_over(parts_.clock.now()); }
  void on_served(std::size_t group) { groups_[group].restarts.on_batch_served(); }
  /// Which of its processes it has now, counted from 0.
  std::uint32_t life(std::size_t group) const { return groups_[group].restart_count; }
  /// Another worker could do what it could not: it is ended and starts again. Nothing where that
  /// was an earlier life.
  void end_at_fault(std::size_t group, std::uint32_t life);

  // What an operator asks for.

  /// No new streams; when it has none, or at the drain limit, its process ends, and what is left is
  /// lost to others.
  void drain(std::size_t group);
  /// A drained one starts again.
  void resume(std::size_t group);
  /// Drains, ends and starts again; what does not run is started at once.
  void restart(std::size_t group);
  /// Of drains and restarts that begin from now on.
  void set_drain_limit(Duration limit) { drain_limit_ = limit; }
  /// All end, for good: nothing is started any more.
  void stop();
  /// No process is left.
  bool is_stopped() const;

  // Time.

  void check_time(TimePoint now);
  /// Ends those that have drained.
  void finish_drains(TimePoint now);
  /// TimePoint::max(): nothing is waited for.
  TimePoint next_deadline() const;

  // What is shown.

  bool is_ready() const;
  /// Each is drained by an operator.
  bool is_to_rest() const;
  /// Tokens of a prompt and its reply at most; 0: none has been ready yet.
  std::uint32_t length_max() const { return length_max_; }
  std::uint64_t weights_bytes() const { return weights_bytes_; }
  /// Of the cache of the worker that was ready last.
  std::uint32_t block_count() const { return block_count_; }
  const std::string& decoder_class() const { return decoder_class_; }
  /// But for its streams.
  DecoderGroupView view(std::size_t group) const;

  // What the processes do.
  Status on_frame(std::size_t group, std::size_t member, const FrameHeader& header,
                  std::span<const std::byte> payload) override;
  Status on_broken(std::size_t group, const Error& error) override;
  void on_stream_end(std::size_t group, const std::optional<WorkerDeath>& death) override;
  void on_exit(std::size_t group) override;
  void on_line(std::size_t group, const std::string& line) override;

 private:
  enum class State : std::uint8_t { Loading, Ready, Ended, Failed };

  static constexpr std::uint32_t kFailedStartsMost = 3;

  /// What was asked of a worker that has loaded, until it is ready.
  struct AskedCanary {
    CanaryAnswer answer;
    std::string decoder_class;
    bool is_judged = false;  // or its verdict waits for another's answer
  };

  struct Group {
    State state = State::Loading;
    GroupGoal goal = GroupGoal::Serve;
    TimePoint drain_until{};
    bool is_asked_for = false;
    std::string reason;
    ErrorKind failure_kind = ErrorKind::Unavailable;  // of a load; of Failed alone
    RestartPolicy restarts{false};
    std::optional<pid_t> pid;             // its process has not been waited for
    StepWatch watch;                      // of this life
    std::optional<TimePoint> started_at;  // until it greets
    std::optional<TimePoint> restart_at;
    std::optional<AskedCanary> canary;
    std::optional<MemoryWait> memory;  // its last load found none
    bool ends_for_memory = false;      // and its process ends for that
    std::optional<TimePoint> end_by;   // its process is to end; looked at then
    bool was_ready = false;            // in this life
    bool was_ever_ready = false;
    bool was_ended = false;                // in this life, for `reason`
    bool was_at_fault = false;             // for what it has computed, or has not
    std::uint32_t failed_start_count = 0;  // lives in a row that ended before they were ready
    std::uint32_t faulty_start_count = 0;  // of these the last ones, at their own fault
    std::string start_failure;             // how the last of those ended
    std::optional<Error> canary_error;     // of this life: what it computes is no number
    std::optional<Error> start_error;      // that, of the last life that ended before it was ready
    std::uint32_t restart_count = 0;
    std::size_t lost_stream_count = 0;  // given to others while it dies
    CacheUse cache_use;                 // of this life
    std::uint64_t earlier_preemption_count = 0;

    bool is_running() const { return pid.has_value(); }
    bool cannot_start() const {
      return !was_ever_ready && !memory && faulty_start_count >= kFailedStartsMost;
    }
    void forgive_starts() {
      failed_start_count = faulty_start_count = 0;
      start_error.reset();
    }
  };

  // decoder_workers.cpp
  Status start_group(std::size_t group);
  Status on_step_begun(std::size_t group, std::span<const std::byte> payload);
  Status on_cache_use(std::size_t group, std::span<const std::byte> payload);
  Status on_hello(std::size_t group, std::span<const std::byte> payload);
  Status on_decoder_ready(std::size_t group, const DecoderReady& ready);
  Error changed_source();
  void on_load_failed(std::size_t group, const Error& error);
  std::optional<Error> common_start_error() const;
  void start_soon(std::size_t group);
  void begin_drain(std::size_t group, GroupGoal goal);

  // decoder_worker_canaries.cpp
  void become_ready(std::size_t group);
  void ask_canary(std::size_t group, const DecoderReady& ready);
  Status on_canary_frame(std::size_t group, const FrameHeader& header,
                         std::span<const std::byte> payload);
  Error no_numbers(std::size_t group, const Error& error);
  void apply(const std::vector<CanaryVerdict>& verdicts);
  void on_verdict(const CanaryVerdict& verdict);

  // decoder_worker_ends.cpp
  void kill(std::size_t group, const std::string& reason);
  void close(std::size_t group, const std::string& reason);
  void close_for(std::size_t group, const std::string& reason);
  void end_life(std::size_t group, const WorkerDeath& death);
  static void note_failed_start(Group& group, const WorkerDeath& death);
  void plan_restart(std::size_t group, const WorkerDeath& death, std::size_t stream_count);
  void plan_try(std::size_t group);
  void start_again(std::size_t group, TimePoint now);
  void look_at_end(std::size_t group, TimePoint now);
  void forgive_pause(TimePoint now);
  std::optional<TimePoint> silent_at(std::size_t group) const;

  const DecoderFleetOptions& options_;
  const Parts parts_;
  std::vector<Group> groups_;
  CanaryBook canaries_ = CanaryBook({});
  Duration drain_limit_;
  std::uint32_t length_max_ = 0;
  std::uint32_t vocab_size_ = 0;
  std::uint64_t weights_bytes_ = 0;
  std::uint32_t block_count_ = 0;
  std::string decoder_class_;
  std::optional<Duration> longest_greeting_;
  std::optional<Error> load_error_;
  std::optional<Error> fatal_;
  std::optional<TimePoint> stop_by_;  // all end for good; then what is left is left to the system
};

}  // namespace muster
