// `muster embed` as a run over records: how far it reads ahead, and what its report says of the
// vectors.

#include "jobs/embed.h"

#include <algorithm>
#include <utility>

#include "dataset/run_journal.h"
#include "jobs/corpus_run.h"
#include "jobs/embed_identity.h"
#include "jobs/embed_work.h"
#include "jobs/finished_output.h"
#include "modelfile/model_folder.h"

namespace muster {
namespace {

// Records read ahead, for each 4,096 tokens of a batch: enough that texts of one length are found
// among mixed ones, few enough that their rows take little memory, and little of the disk while
// they wait for their turn.
constexpr std::size_t kWindowRecords = 4096;

Result<CorpusForm> form_of(const EmbedOptions& options, const RunFiles& files,
                           VectorFormat format) {
  CorpusForm form{
      .files = files,
      .header_size = vector_header_size(format),
      .model_files = {},
      .devices = {},
      .window_records = kWindowRecords * std::max<std::size_t>(1, options.batch_tokens / 4096),
      // A server tells of a text's tokens only when it has computed it.
      .knows_tokens = !options.server};
  if (options.server) return form;
  for (const auto& device : options.devices) form.devices.push_back(device.name());
  if (!options.stream) form.model_files = MUSTER_TRY(find_model(options.model));
  return form;
}

// Of an interrupted run that goes on, where nobody names one: its rows are of one precision,
// whatever a second measurement would say.
std::optional<Precision> precision_before(const EmbedOptions& options, const RunFiles& files) {
  if (!options.resume || options.precision || options.stream || options.server) return std::nullopt;
  const auto found = find_output(files);
  if (!found || *found != FoundOutput::Unfinished) return std::nullopt;  // the run says why
  return embed_precision_in(interrupted_identity(files));
}

}  // namespace

Result<EmbedReport> embed_corpus(const EmbedOptions& options, const CorpusEvents& events,
                                 const Clock& clock, const std::function<bool()>& cancelled) {
  auto format = VectorFormat::Npy;
  if (!options.stream) format = MUSTER_TRY(vector_format_of(options.out));
  const RunFiles files(options.out);
  auto settled = options;
  const auto earlier = precision_before(options, files);
  if (earlier) settled.precision = earlier;
  EmbedWork work(settled, files, format, clock, cancelled);
  auto form = MUSTER_TRY(form_of(settled, files, format));
  CorpusRun run(settled, std::move(form), work, events, clock, cancelled);
  auto outcome = MUSTER_TRY(run.run());
  EmbedReport report;
  static_cast<CorpusReport&>(report) = std::move(outcome.report);
  const auto& record = outcome.record;
  report.dim = record.dim;
  report.precision = parse_precision(record.precision).value_or(Precision::Fp32);
  report.precision_reason = report.was_complete ? "that of the finished run"
                            : earlier           ? "that of the run before"
                                                : work.precision_reason();
  report.time.measure = work.measuring_seconds();
  report.time.other = std::max(0.0, report.time.other - report.time.measure);
  if (!options.stream) report.index = files.index;
  return report;
}

}  // namespace muster
