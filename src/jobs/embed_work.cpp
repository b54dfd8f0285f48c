// What of a run is about vectors: who computes them, when one is no good, what binds them to a
// model, and their files.

#include "jobs/embed_work.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "jobs/embed_identity.h"
#include "jobs/finished_output.h"
#include "jobs/output_parts.h"
#include "jobs/run_output.h"
#include "jobs/stream_output.h"
#include "modelfile/model_folder.h"

namespace muster {
namespace {

Error not_finite(Precision precision) {
  std::string message = "the vector of this text is not finite (NaN or infinity)";
  if (precision != Precision::Fp32) {
    message += fmt::format(" in {}; --precision fp32 has more room", precision_name(precision));
  }
  return Error{ErrorKind::InvalidArgument, message};
}

}  // namespace

EmbedWork::EmbedWork(const EmbedOptions& options, RunFiles files, VectorFormat format,
                     const Clock& clock, const std::function<bool()>& cancelled)
    : options_(options),
      files_(std::move(files)),
      format_(format),
      clock_(clock),
      cancelled_(cancelled) {}

Result<std::unique_ptr<CorpusBackend>> EmbedWork::open(CorpusSink sink,
                                                       const std::function<bool()>& cancelled) {
  sink_ = std::move(sink);
  if (options_.resume) then_ = interrupted_identity(files_);
  const auto open = options_.server ? open_remote_backend : open_local_backend;
  // A device's rows have been looked at: one that is not finite is a fault of the device first.
  EmbedBackendEvents events{.on_tokens = sink_.on_tokens,
                            .on_row = sink_.on_row,
                            .on_item_failed = sink_.on_failed,
                            .on_notice = sink_.on_notice,
                            .on_phase = sink_.on_phase};
  if (options_.server) {
    events.on_row = [this](ItemKey key, std::span<const std::byte> bytes) {
      on_server_row(key, bytes);
    };
  }
  auto backend = MUSTER_TRY(open(options_, std::move(events), clock_, cancelled));
  backend_ = backend.get();
  return std::unique_ptr<CorpusBackend>(std::move(backend));
}

void EmbedWork::on_server_row(ItemKey key, std::span<const std::byte> bytes) {
  std::vector<float> row(bytes.size() / sizeof(float));
  std::memcpy(row.data(), bytes.data(), bytes.size());
  if (!is_all_finite(row)) {
    return sink_.on_failed(key, not_finite(backend_->model().precision));
  }
  sink_.on_result(key, {.row = std::move(row)});
}

RunIdentity EmbedWork::identity() const {
  return identity_as_begun(embed_identity(options_, backend_->model()), then_);
}

// Without workers, or of a server.
Result<EmbedModel> EmbedWork::described() const {
  if (!options_.server) return describe_local_model(options_);
  const EmbedBackendEvents deaf{.on_tokens = [](ItemKey, const Tokenizer::Encoded&) {},
                                .on_row = [](ItemKey, std::span<const std::byte>) {},
                                .on_item_failed = [](ItemKey, const Error&) {},
                                .on_notice = [](const std::string&) {}};
  const auto backend = MUSTER_TRY(open_remote_backend(options_, deaf, clock_, cancelled_));
  return backend->model();
}

Result<std::optional<std::string>> EmbedWork::difference_from(const RunIdentity& then) {
  if (!without_) without_ = MUSTER_TRY(described());
  const auto now = identity_as_asked(options_, embed_identity(options_, *without_));
  return identity_difference(identity_as_asked(options_, then), now);
}

Result<std::unique_ptr<RecordsAhead>> EmbedWork::open_ahead(
    std::optional<std::uint64_t> resumed_at) {
  auto run = identity_hash(identity());
  std::unique_ptr<AheadFile> file;
  if (resumed_at) {
    file = MUSTER_TRY(AheadFile::reopen(files_.ahead, std::move(run), *resumed_at));
  } else {
    file = std::make_unique<AheadFile>(files_.ahead, std::move(run));
  }
  auto ahead = std::make_unique<RowsAhead>(std::move(file));
  ahead_ = ahead.get();
  return std::unique_ptr<RecordsAhead>(std::move(ahead));
}

Result<std::unique_ptr<RecordOutput>> EmbedWork::open_output(
    std::optional<RunResumption>& resumption) {
  using Output = std::unique_ptr<RecordOutput>;
  dim_ = backend_->dim();
  if (dim_ == 0) return Output();
  if (options_.stream) return Output(std::make_unique<StreamOutput>(*options_.stream));
  const auto ahead_dim = ahead_ != nullptr ? ahead_->dim() : 0;
  if (ahead_dim != 0 && ahead_dim != dim_) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("{}: rows of {} values, and the model gives {}: start anew with "
                             "--restart",
                             files_.ahead.string(), ahead_dim, dim_)};
  }
  const RowShape shape{.format = format_, .dim = dim_, .has_objects = writes_objects(options_)};
  return Output(MUSTER_TRY(RunOutput::open(files_, vector_parts(files_, shape), identity(),
                                           std::exchange(resumption, std::nullopt))));
}

Result<OutputRecord> EmbedWork::record() {
  const auto& model = backend_->model();
  if (model.server.empty() && MUSTER_TRY(model_hash(model.path)) != model.hash) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("the files of {} have changed while it was used: rows may be of "
                             "either model{}; run again",
                             model.path, options_.stream ? "" : ", and none is kept")};
  }
  OutputRecord record;
  record.model = model.path;
  record.server = model.server;
  record.model_hash = model.hash;
  record.equality_class = model.equality_class;
  record.precision = precision_name(model.precision);
  record.pooling = model.pooling;
  record.normalize = model.normalize;
  record.prompt_name = model.prompt_name;
  record.length_max = model.length_max;
  record.dim = dim_;
  record.identity = identity();
  record.kept = options_.input.keep;
  return record;
}

}  // namespace muster
