#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "dataset/output_record.h"
#include "dataset/run_journal.h"
#include "jobs/durable_steps.h"
#include "jobs/output_parts.h"
#include "jobs/record_output.h"
#include "jobs/run_files.h"

namespace muster {

/// The output of a run while it grows: its parts and the journal that vouches for them, under their
/// part names until `finish`. After a failed call every call says the same, and nothing more is
/// journalled.
///
/// Threads: not thread-safe; one at a time, the loop of the run or its writer.
class RunOutput final : public RecordOutput {
 public:
  /// Begins, which drops what is ahead of an earlier run, or goes on with `resumption`.
  static Result<std::unique_ptr<RunOutput>> open(const RunFiles& files, const OpenParts& open_parts,
                                                 const RunIdentity& identity,
                                                 std::optional<RunResumption> resumption);

  Status append(WindowRecord& record) override;

  /// Makes everything so far durable and journals it.
  Status commit(const std::string& records_hash) override;
  Status begin_commit(const std::string& records_hash) override;

  /// Commits, completes `record` (which says how the results were made, and `records_hash`) with
  /// what it tells of the files, writes it beside them, and gives all of them their final names.
  ///
  /// Errors: those of check_none_foreign, and the names are not given; those of writing.
  Status finish(OutputRecord record) override;

  std::uint64_t record_count() const { return step_.record_count; }
  std::uint64_t row_count() const { return step_.row_count; }

  std::uint64_t durable_record_count() const override { return durable_record_count_; }
  bool is_finished() const override { return is_finished_; }

 private:
  RunOutput(const RunFiles& files, std::unique_ptr<OutputParts> parts,
            std::unique_ptr<RunJournal> journal, const RunStep& step);

  Status append_record(WindowRecord& record);
  Status begin_step(const std::string& records_hash);
  Status settle(std::optional<Result<RunStep>> outcome);
  Status make_durable(const RunStep& step);
  Status keep(Status outcome);

  const RunFiles files_;
  std::unique_ptr<OutputParts> parts_;
  std::unique_ptr<RunJournal> journal_;
  RunStep step_;
  std::uint64_t durable_record_count_;
  bool is_finished_ = false;
  Status state_ = Done{};  // the first failure
  DurableSteps steps_;     // the last member: its thread uses the others
};

}  // namespace muster
