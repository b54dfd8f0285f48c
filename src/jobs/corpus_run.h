#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/hash.h"
#include "base/result.h"
#include "dataset/text_reader.h"
#include "jobs/corpus.h"
#include "jobs/corpus_work.h"
#include "jobs/duplicate_ids.h"
#include "jobs/output_lock.h"
#include "jobs/output_taking.h"
#include "jobs/record_source.h"
#include "jobs/record_spares.h"
#include "jobs/record_window.h"
#include "jobs/record_writer.h"
#include "jobs/records_ahead.h"
#include "jobs/run_files.h"
#include "jobs/time_share.h"

namespace muster {

/// Adds the time of a scope to one of the parts of a run.
class Stopwatch {
 public:
  Stopwatch(const Clock& clock, double& total)
      : clock_(clock), total_(total), begin_(clock.now()) {}
  ~Stopwatch() { total_ += seconds(clock_.now() - begin_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  const Clock& clock_;
  double& total_;
  const TimePoint begin_;
};

/// Whether the flags of a run go together: --resume, --restart and a stream.
///
/// Errors: InvalidArgument, naming them.
Status check_run_flags(const CorpusOptions& options);

/// What a run ends with.
struct CorpusOutcome {
  CorpusReport report;
  OutputRecord record;  // of the results, also of those that were there already
};

/// A run over the records of files, whatever it computes of each: reads some records, steps the
/// backend, writes what is done; until the input is at its end.
///
/// Threads: not thread-safe; owned by its loop. Callbacks of the backend come within its step.
class CorpusRun {
 public:
  CorpusRun(const CorpusOptions& options, CorpusForm form, CorpusWork& work,
            const CorpusEvents& events, const Clock& clock, const std::function<bool()>& cancelled);

  Result<CorpusOutcome> run();

 private:
  // Beginning: corpus_opening.cpp.
  Status prepare();
  Result<FoundOutput> take_names();
  Status open_backend(FoundOutput found);
  CorpusSink sink();
  Status open_ahead();
  Status skip_done_records();

  // The loop and its end: corpus_run.cpp.
  Status pump();
  Result<OutputRecord> finish();
  Error stopped(const Error& error);
  Error stopped_stream(const Error& error);

  // Records in, results out: corpus_records.cpp.
  Status read_turn();
  Status check_has_texts() const;
  Status take_record();
  bool take_ahead(WindowRecord& taken);
  void note_id(const IndexEntry& entry);
  void on_tokens(ItemKey key, const Tokenizer::Encoded& tokens);
  void on_result(ItemKey key, RecordResult result);
  void on_row(ItemKey key, std::span<const std::byte> bytes);
  void on_failed(ItemKey key, const Error& error);
  Status open_output();
  Status write_done();
  Status commit();
  Status keep_ahead();
  Status put_ahead(bool only_waiting);
  void keep_all();
  std::uint64_t kept_count() const;

  // What is told of it: corpus_account.cpp.
  void begin_phase(const std::string& phase);
  void report_progress(bool is_last);
  void take_counts();
  void tell_of_fields_not_met() const;
  CorpusReport confirmed(const OutputRecord& record);
  CorpusReport report();

  std::string out_name() const {
    return options_.stream ? options_.stream->name : form_.files.out.string();
  }
  /// "rows", "replies".
  std::string results_word() const;
  bool reads_stdin() const { return muster::reads_stdin(options_); }
  std::string place_of(const IndexEntry& entry) const {
    return place_name(entry.input, entry.line);
  }

  const CorpusOptions& options_;
  const CorpusForm form_;
  CorpusWork& work_;
  const CorpusEvents& events_;
  const Clock& clock_;
  const std::function<bool()>& cancelled_;

  std::unique_ptr<TextReader> reader_;    // before the records that are new, and of those
  std::unique_ptr<RecordSource> source_;  // it reads for this one
  CorpusBackendStatus status_;            // of the last look
  std::optional<OutputLock> lock_;
  std::optional<RunResumption> resumption_;
  std::unique_ptr<RecordWriter> writer_;  // once the shape of a result is known
  RecordWindow window_;
  std::unique_ptr<CorpusBackend> backend_;  // behind the window, whose texts its threads read
  RecordSpares spares_;
  std::unique_ptr<RecordsAhead> ahead_;  // nullptr where nothing can be resumed
  TimeShare ahead_share_;                // of keeping results ahead
  bool has_told_of_no_room_ = false;     // for them
  std::uint64_t first_record_ = 0;       // of the input: the window's first key

  ReadRecord read_;       // the one just read
  Hash128 records_hash_;  // over the records that an earlier run has done; goes to writer_
  std::uint64_t resumed_bad_count_ = 0;
  DuplicateIds ids_;
  std::string first_duplicate_;
  bool is_at_end_ = false;
  bool are_results_doubtful_ = false;  // nobody can tell which model they are of
  std::optional<Error> fatal_;         // set by a callback, looked at after the step
  CorpusProgress progress_;
  TimeSplit time_;
  Duration writer_wait_{};              // until it is looked at again whether the writer has room
  std::uint64_t encoded_position_ = 0;  // bytes of the inputs whose texts' tokens are known
  std::uint64_t position_before_ = 0;   // of the record that is read
  std::uint64_t unknown_count_ = 0;     // texts that were submitted, whose tokens are not
  const TimePoint begin_;
  const double cpu_begin_;
  const double loop_cpu_begin_;
  std::optional<TimePoint> first_result_at_;
  TimePoint last_commit_{};
  TimePoint last_progress_{};
  std::optional<double> worker_cpu_seconds_;
};

}  // namespace muster
