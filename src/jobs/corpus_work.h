#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "dataset/output_record.h"
#include "dataset/run_journal.h"
#include "jobs/corpus.h"
#include "jobs/record_output.h"
#include "jobs/record_window.h"
#include "jobs/records_ahead.h"
#include "jobs/run_files.h"
#include "scheduler/batch_queue.h"
#include "tokenizer/tokenizer.h"

namespace muster {

/// What a run hears of its records, from within `step` of its backend.
struct CorpusSink {
  /// The tokens of a text; before its result.
  std::function<void(ItemKey, const Tokenizer::Encoded&)> on_tokens;
  std::function<void(ItemKey, RecordResult)> on_result;
  /// A result that is a row: [dim] float32 as bytes (they may be unaligned), all of them finite.
  std::function<void(ItemKey, std::span<const std::byte>)> on_row;
  /// This record alone cannot be computed.
  std::function<void(ItemKey, const Error&)> on_failed;
  std::function<void(const std::string&)> on_notice;
  /// What is done from now on, while it is opened: "starting workers".
  std::function<void(const std::string&)> on_phase;
};

/// Who computes the results, as it is now.
struct CorpusBackendStatus {
  std::vector<DeviceProgress> devices;
  std::optional<TimePoint> ready_at;  // since when results can come
  double tokenize_seconds = 0;        // of this process's threads beside the loop, summed
};

/// Computes the results of a run.
///
/// Threads: not thread-safe; owned by the loop of the run.
class CorpusBackend {
 public:
  virtual ~CorpusBackend() = default;

  /// Takes a record's text; its tokens and what becomes of it are told by later steps, once. The
  /// record stays where it is until then, or until the backend is gone, and its text as it is.
  virtual void submit(const WindowRecord& record) = 0;

  /// Waits up to `timeout` for something to happen and handles it.
  ///
  /// Errors: what makes every further result impossible.
  virtual Status step(Duration timeout) = 0;

  virtual CorpusBackendStatus status() const = 0;

  /// Ends it. The CPU seconds of the workers of this run; nullopt where nobody counts them.
  virtual std::optional<double> stop() = 0;
};

/// What a run computes of each record, and how that lies in its files: embed_work.h, reply_work.h.
///
/// Threads: not thread-safe; owned by the loop of the run.
class CorpusWork {
 public:
  virtual ~CorpusWork() = default;

  /// Opens who computes. `cancelled` is asked while it waits. Called once, before all below but
  /// `difference_from`.
  virtual Result<std::unique_ptr<CorpusBackend>> open(CorpusSink sink,
                                                      const std::function<bool()>& cancelled) = 0;

  /// All that can change a byte of the output.
  virtual RunIdentity identity() const = 0;

  /// As DifferenceFrom (finished_output.h); starts no worker.
  virtual Result<std::optional<std::string>> difference_from(const RunIdentity& then) = 0;

  /// What waits for its turn. resumed_at: records that an interrupted run has done, to go on with
  /// what it has left; nullopt for a new run.
  virtual Result<std::unique_ptr<RecordsAhead>> open_ahead(
      std::optional<std::uint64_t> resumed_at) = 0;

  /// Where results go; takes `resumption` where it goes on. nullptr as long as nobody knows the
  /// shape of a result.
  virtual Result<std::unique_ptr<RecordOutput>> open_output(
      std::optional<RunResumption>& resumption) = 0;

  /// How the results were made, once all are there.
  ///
  /// Errors: Corrupt where the model's files have changed meanwhile: the results may be of either.
  virtual Result<OutputRecord> record() = 0;
};

/// What tells one kind of run from another before anything is computed.
struct CorpusForm {
  RunFiles files;
  std::uint64_t header_size = 0;                     // bytes of OUT before the first result
  std::optional<std::filesystem::path> model_files;  // a folder or a file; none of a server
  std::vector<std::string> devices;                  // what starts, as progress shows it
  std::size_t window_records = 0;                    // that wait at most, at first
  /// Texts have their tokens before they are computed: then they tell how much is done.
  bool knows_tokens = true;
  std::string text_word = "text";  // what a record is called, and
  std::string result_word = "row";
};

}  // namespace muster
