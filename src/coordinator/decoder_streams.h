#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordinator/decoder_workers.h"
#include "coordinator/prefix_places.h"
#include "coordinator/step_signal.h"
#include "scheduler/fair_order.h"
#include "scheduler/place_forecast.h"
#include "spec/generation.h"
#include "wire/generation_messages.h"

namespace muster {

using StreamId = std::uint64_t;

/// Tokens of a reply, before it is there: its limit says little, as most end before it.
inline constexpr std::uint32_t kReplyEstimate = 256;

/// What is to be continued.
struct StreamRequest {
  std::vector<std::uint32_t> ids = {};
  std::uint32_t token_limit = 0;  // 0: it ends behind its prompt
  std::vector<std::uint32_t> stop_ids = {};
  std::uint64_t prefix_scope = 0;  // it shares keys and values within this alone
  FlowId flow = 0;                 // streams of different flows take turns
  /// The ids are told as well, from the second on, with their log-probabilities; with
  /// sampling.logprob_count.
  bool scores_prompt = false;
  SamplingOptions sampling = {};
};

/// What becomes of streams, told from within `step`. Every token is told once, in order. Each call
/// may submit and cancel.
struct DecoderFleetEvents {
  /// A worker has begun with it, before any token; so many of what was known of it are not
  /// computed, since their keys and values were there. Again where it goes on elsewhere.
  std::function<void(StreamId, std::uint32_t cached_count)> on_begun;
  /// Of its prompt first, where that is scored (`is_prompt`), each once and in order, too.
  std::function<void(StreamId, const GeneratedToken&)> on_token;
  std::function<void(StreamId, FinishReason)> on_finished;
  /// was_given: a worker had it at some time, and so may have computed at it; not where it refused
  /// it before it had begun.
  std::function<void(StreamId, const Error&, bool was_given)> on_failed;
  std::function<void()> on_change;  // a worker is ready, or is not any more
  std::function<void(const std::string&, std::size_t group)> on_notice;  // for people
};

/// Owns the streams of one decoder: who continues which, and where it goes on when its worker is
/// lost. Prompts and tokens are owned here: what follows is what would have come, since sampling
/// depends on seed, choice and position alone.
///
/// A stream goes to the worker that has the fewest, and of several such to the one that was given
/// the longest beginning of it before; to one that is late, and so may be hung, only where no other
/// has a place. Where each has `streams_most`, it waits: flows have equal
/// shares, by the tokens of their prompts and replies (at most kReplyEstimate of one), and those of
/// one flow keep their order. One that was lost has its turn again. A worker's death by its own
/// fault is a strike against those that had got no token since they were given to it; one with a
/// strike runs alone until its next token, and fails at the third, so that a prompt which kills
/// workers takes no other stream with it. A worker that is killed from outside is nobody's fault;
/// but one that is killed whenever it has a stream may be killed for the memory that this one
/// takes: after four such deaths without a token it runs alone, and it fails at the eighth. Where
/// no worker can work, what waits fails.
///
/// A stream at which a worker fails without dying is tried on another one, where there is one, and
/// fails with it only if that one fails, too. Where that one goes on with it, the first one is at
/// fault and is started again: it ends what it is given so quickly that it would get most of it.
///
/// Threads: not thread-safe; owned by the fleet's loop.
class DecoderStreams final {
 public:
  /// What it works with; all of it outlives it.
  struct Parts {
    DecoderWorkers& workers;
    const DecoderFleetEvents& events;
    StepSignal& signal;
    const Clock& clock;
  };

  /// options: outlives it too.
  DecoderStreams(const DecoderFleetOptions& options, Parts parts);

  /// As DecoderFleet's.
  StreamId submit(StreamRequest request);
  bool cancel(StreamId id);

  /// Tells workers what was cancelled, and gives them what waits.
  void settle();

  std::size_t waiting_count() const { return waiting_.size(); }
  std::size_t running_count() const { return streams_.size() - waiting_.size(); }
  // As DecoderFleet's.
  std::size_t free_count() const;
  std::optional<Duration> wait_for_places(std::size_t count) const;
  /// The group that has a stream; nullopt for one that waits or has ended.
  std::optional<std::size_t> group_of(StreamId id) const;
  /// Since when one waits; nullopt for one that a worker has, or that has ended.
  std::optional<TimePoint> waits_since(StreamId id) const;
  /// What of a worker's view is about its streams.
  void add_to_view(std::size_t group, DecoderGroupView& view) const;

  // As DecoderWorkerClient's.
  Status on_stream_frame(std::size_t group, const FrameHeader& header,
                         std::span<const std::byte> payload);
  std::size_t on_lost(std::size_t group, const DecoderLoss& loss);
  std::size_t owed_count(std::size_t group) const { return groups_[group].load(); }

 private:
  /// A worker that could not compute a stream.
  struct FailedWorker {
    std::size_t group = 0;
    std::uint32_t life = 0;  // as DecoderWorkers counts them
  };
  struct Stream {
    Generate request;        // grows with every token
    FlowId flow = 0;         // these three: its turn among those that wait
    std::uint64_t cost = 0;  // tokens
    std::uint64_t rank = 0;
    std::optional<std::size_t> group;  // that has it
    TimePoint waits_since{};           // of one that no group has
    bool has_token = false;            // since it was given to that
    bool was_given = false;            // to any
    bool has_begun = false;            // one has said so
    std::uint32_t strikes = 0;
    std::uint32_t death_count = 0;   // of workers that had it, each by its own fault
    std::uint32_t barren_count = 0;  // of those that died since its last token, by whoever's fault
    /// Without dying, until one goes on with it.
    std::optional<FailedWorker> failed_on = {};
    bool was_tried_again = false;
  };
  struct Group {
    std::set<StreamId> streams;
    /// Cancelled ones that the worker has not answered for yet. They count as streams: a worker
    /// that is hung is not given more and more, and is found.
    std::set<StreamId> owed;
    std::uint64_t token_count = 0;     // that it has chosen, and
    std::uint64_t finished_count = 0;  // streams that came to their end with it
    std::uint64_t drafted_count = 0;   // tokens of drafts that it computed, and
    std::uint64_t accepted_count = 0;  // those of them that it has chosen

    std::size_t load() const { return streams.size() + owed.size(); }
  };

  Status on_tokens(std::size_t group, const Tokens& message);
  Status on_finished(std::size_t group, StreamId id, FinishReason reason);
  void on_stream_failed(std::size_t group, StreamId id, const Error& error);
  bool has_another(std::size_t group) const;
  static Status add_token(Stream& stream, const GeneratedToken& token);
  bool take(std::size_t group, StreamId id);
  void wait_again(StreamId id, const Stream& stream);
  void leave_order(const Stream& stream);
  void lose(std::size_t group, StreamId id, const DecoderLoss& loss);
  std::size_t give_all();
  void give(StreamId id, std::size_t group);
  void watch_places(std::size_t given_count);
  std::optional<std::size_t> place_for(const Stream& stream,
                                       std::optional<std::size_t> reserved) const;
  std::vector<PrefixKey> keys_of(const Stream& stream) const;
  static bool is_suspect(const Stream& stream);
  static std::optional<Error> give_up_error(const Stream& stream, const DecoderLoss& loss);
  bool has_suspect(const Group& group) const;
  std::optional<std::size_t> least_busy() const;
  std::size_t places_of_each() const;
  void fail_all_if_none_can_work();

  const DecoderFleetOptions& options_;
  const Parts parts_;
  std::vector<Group> groups_;
  std::map<StreamId, Stream> streams_;
  PrefixPlaces prefixes_;
  std::set<std::pair<std::uint64_t, StreamId>> waiting_;  // of these, by rank
  FairOrder order_;
  PlaceForecast forecast_;
  std::vector<std::pair<std::size_t, StreamId>> cancelled_;  // whose worker is not told yet
  StreamId next_id_ = 1;
};

}  // namespace muster
