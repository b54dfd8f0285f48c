#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "chat/decoder_text.h"
#include "coordinator/decoder_fleet.h"
#include "jobs/corpus_work.h"
#include "jobs/decoder_cache.h"
#include "jobs/prompt_encoder.h"
#include "jobs/replies.h"
#include "jobs/reply_text.h"
#include "modelfile/decoder_hash.h"
#include "tokenizer/stop_strings.h"

namespace muster {

/// Computes the replies of a run on this machine's devices. Prompts become ids on the loop's own
/// thread, just before a worker can take them: until then they are texts.
///
/// Threads: not thread-safe; owned by the loop of the run.
class ReplyBackend final : public CorpusBackend {
 public:
  /// Starts the workers and reads the model's text side while they load; returns once one is ready.
  /// now_unix: what the chat template shows.
  ///
  /// Errors: those of the model's files, of PromptEncoder::make and of DecoderFleet;
  /// InvalidArgument for an empty stop string; Unavailable where no device can load the decoder,
  /// Corrupt where what it computes is no number; Cancelled.
  static Result<std::unique_ptr<ReplyBackend>> open(const RepliesOptions& options,
                                                    const DecoderCache& cache,
                                                    std::int64_t now_unix, CorpusSink sink,
                                                    const Clock& clock,
                                                    const std::function<bool()>& cancelled);

  void submit(const WindowRecord& record) override;
  Status step(Duration timeout) override;
  CorpusBackendStatus status() const override;
  std::optional<double> stop() override;

  /// Tokens of a prompt and its reply at most.
  std::uint32_t length_max() const { return length_max_; }
  const std::string& decoder_class() const { return decoder_class_; }
  /// Of the prompts whose replies have ended: tokens that were not computed, as earlier prompts
  /// began so.
  std::uint64_t cached_token_count() const { return cached_token_count_; }
  bool shows_date() const { return muster::shows_date(text_); }

 private:
  /// A reply under way.
  struct Reply {
    Reply(const Tokenizer& tokenizer, bool continues_text, StopStrings stops)
        : text(tokenizer, continues_text, std::move(stops), [this](std::string_view part) {
            content += part;
            return Status(Done{});
          }) {}

    ItemKey key = 0;
    std::uint32_t prompt_token_count = 0;
    std::optional<std::uint32_t> cached_count;  // of these, once a worker has begun
    std::optional<std::uint64_t> seed;          // where tokens are drawn
    std::string content;                        // so far
    ReplyText text;
  };

  ReplyBackend(const RepliesOptions& options, CorpusSink sink, const Clock& clock);
  Status open_text(std::int64_t now_unix);
  Status await_worker(const std::function<bool()>& cancelled);
  DecoderFleetEvents fleet_events();
  bool can_give() const;
  void give_prompts();
  void give(const WindowRecord& record);
  void wait(Duration most) const;
  void on_begun(StreamId id, std::uint32_t cached_count);
  void on_token(StreamId id, std::uint32_t token);
  void on_failed(StreamId id, const Error& error);
  Error why_none_works(const Error& told) const;
  void end(StreamId id, FinishReason reason);
  void note_ready();

  const RepliesOptions& options_;
  const CorpusSink sink_;
  const Clock& clock_;
  const std::string source_;  // as workers are told it
  const DecoderStamp stamp_;  // of it, from before the first of them
  DecoderText text_;
  std::optional<PromptEncoder> encoder_;
  std::optional<StopStrings> stops_;
  std::uint32_t length_max_ = 0;
  std::string decoder_class_;
  std::uint64_t cached_token_count_ = 0;
  std::deque<const WindowRecord*> prompts_;  // that wait to be tokenised
  std::map<StreamId, std::unique_ptr<Reply>> replies_;
  std::vector<std::optional<TimePoint>> ready_at_;  // by device
  std::vector<std::uint64_t> stopped_count_;        // replies that a stop string ended, by device
  std::optional<Error> fatal_;                      // set by a callback, looked at after the step
  std::unique_ptr<DecoderFleet> fleet_;             // nullptr: it is over
};

}  // namespace muster
