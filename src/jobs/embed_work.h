#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "dataset/vector_writer.h"
#include "jobs/corpus_work.h"
#include "jobs/embed.h"
#include "jobs/embed_backend.h"
#include "jobs/rows_ahead.h"
#include "jobs/run_files.h"

namespace muster {

/// A run that computes a vector of each text, on the devices here or by a server.
///
/// Threads: not thread-safe; owned by the loop of the run.
class EmbedWork final : public CorpusWork {
 public:
  EmbedWork(const EmbedOptions& options, RunFiles files, VectorFormat format, const Clock& clock,
            const std::function<bool()>& cancelled);

  Result<std::unique_ptr<CorpusBackend>> open(CorpusSink sink,
                                              const std::function<bool()>& cancelled) override;
  RunIdentity identity() const override;
  Result<std::optional<std::string>> difference_from(const RunIdentity& then) override;
  Result<std::unique_ptr<RecordsAhead>> open_ahead(
      std::optional<std::uint64_t> resumed_at) override;
  Result<std::unique_ptr<RecordOutput>> open_output(
      std::optional<RunResumption>& resumption) override;
  Result<OutputRecord> record() override;

  /// Why the precision is what it is; empty where nothing was computed.
  std::string precision_reason() const {
    return backend_ != nullptr ? backend_->model().precision_reason : "";
  }
  /// As EmbedModel's.
  double measuring_seconds() const {
    return backend_ != nullptr ? backend_->model().measuring_seconds : 0;
  }

 private:
  void on_server_row(ItemKey key, std::span<const std::byte> bytes);
  Result<EmbedModel> described() const;

  const EmbedOptions& options_;
  const RunFiles files_;
  const VectorFormat format_;
  const Clock& clock_;
  const std::function<bool()>& cancelled_;
  CorpusSink sink_;
  RunIdentity then_;                   // of the run that this one goes on with
  EmbedBackend* backend_ = nullptr;    // the run owns it
  RowsAhead* ahead_ = nullptr;         // likewise
  std::optional<EmbedModel> without_;  // the model as it is known without a device
  std::uint32_t dim_ = 0;
};

}  // namespace muster
