#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "dataset/output_record.h"
#include "jobs/corpus.h"
#include "jobs/record_output.h"

namespace muster {

/// Results that are written to a stream as they come: nothing is kept, and nothing can be resumed.
///
/// Vectors as Jsonl: `{"id":"a7","fields":{…},"embedding":[…]}` a line, `id` and `fields` as far as
/// there are any; `{"embedding":null,"reason":"…"}` for a bad record. As F32: the rows' float32,
/// little-endian, without a head; bad records leave nothing. Replies: their lines (reply_line.h).
class StreamOutput final : public RecordOutput {
 public:
  explicit StreamOutput(CorpusStream stream, OutputKind kind = OutputKind::Vectors)
      : stream_(std::move(stream)), kind_(kind) {}

  Status append(WindowRecord& record) override;
  Status commit(const std::string& records_hash) override;
  Status begin_commit(const std::string& records_hash) override { return commit(records_hash); }
  Status finish(OutputRecord record) override;
  std::uint64_t durable_record_count() const override { return 0; }
  bool is_finished() const override { return false; }

 private:
  const CorpusStream stream_;
  const OutputKind kind_;
  std::uint64_t row_count_ = 0;
  std::string line_;
};

}  // namespace muster
