#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "jobs/corpus_work.h"
#include "jobs/replies.h"
#include "jobs/reply_backend.h"
#include "jobs/run_files.h"

namespace muster {

/// The entry of a run's identity that says what its replies are computed in.
inline constexpr const char* kPrecisionEntry = "--precision";

/// A run that computes a reply to each prompt.
///
/// What a reply depends on beside the prompt is the run's: its seed, the time that chat templates
/// show, and the length of the context, which memory may have cut. An interrupted run goes on with
/// its own.
///
/// Threads: not thread-safe; owned by the loop of the run.
class ReplyWork final : public CorpusWork {
 public:
  ReplyWork(const RepliesOptions& options, RunFiles files, const Clock& clock);

  Result<std::unique_ptr<CorpusBackend>> open(CorpusSink sink,
                                              const std::function<bool()>& cancelled) override;
  RunIdentity identity() const override;
  Result<std::optional<std::string>> difference_from(const RunIdentity& then) override;
  Result<std::unique_ptr<RecordsAhead>> open_ahead(
      std::optional<std::uint64_t> resumed_at) override;
  Result<std::unique_ptr<RecordOutput>> open_output(
      std::optional<RunResumption>& resumption) override;
  Result<OutputRecord> record() override;

  /// Tokens of prompts that were not computed; while its backend is there.
  std::uint64_t cached_token_count() const {
    return backend_ == nullptr ? 0 : backend_->cached_token_count();
  }

 private:
  const RepliesOptions& options_;
  const RunFiles files_;
  const Clock& clock_;
  std::string hash_;                      // of the model's files
  std::optional<std::int64_t> now_unix_;  // where a chat template shows it
  std::uint32_t length_max_ = 0;
  std::string decoder_class_;
  const ReplyBackend* backend_ = nullptr;  // the run's, once it is open
};

}  // namespace muster
