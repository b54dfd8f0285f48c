// Outputs of `muster embed` without a run.

#include "serving/corpus_fixture.h"

#include <gtest/gtest.h>

#include "jobs/run_output.h"
#include "modelfile/model_folder.h"

namespace muster {

void write_corpus(const std::filesystem::path& out, const std::filesystem::path& model_folder,
                  const std::vector<std::string>& kept, const std::vector<CorpusRow>& rows) {
  const auto dim = static_cast<std::uint32_t>(rows.front().values.size());
  const RunFiles files(out);
  auto output = RunOutput::open(files, vector_parts(files, {.dim = dim}), {}, std::nullopt);
  ASSERT_TRUE(output) << output.error().message;
  for (const auto& row : rows) {
    WindowRecord record;
    record.entry.input = "in.jsonl";
    record.entry.id = row.id;
    record.entry.text = row.text;
    record.entry.fields = row.fields;
    record.result.row = row.values;
    ASSERT_TRUE((*output)->append(record));
  }
  OutputRecord record;
  record.model = model_folder.string();
  record.model_hash = *model_hash(model_folder);
  record.pooling = "mean";
  record.dim = dim;
  record.kept = kept;
  const auto done = (*output)->finish(record);
  ASSERT_TRUE(done) << done.error().message;
}

}  // namespace muster
