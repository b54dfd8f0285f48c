#pragma once

#include <cstdint>
#include <string>

#include "jobs/embed.h"
#include "jobs/embed_output.h"

namespace muster {

/// Rows that are written to a stream as they come: nothing is kept, and nothing can be resumed.
///
/// Jsonl: `{"id":"a7","fields":{…},"embedding":[…]}` a line, `id` and `fields` as far as there are
/// any; `{"embedding":null,"reason":"…"}` for a bad record. F32: the rows' float32, little-endian,
/// without a head; bad records leave nothing.
class StreamOutput final : public EmbedOutput {
 public:
  explicit StreamOutput(EmbedStream stream) : stream_(std::move(stream)) {}

  Status append(IndexEntry& entry, std::span<const float> row) override;
  Status commit(const std::string& records_hash) override;
  Status begin_commit(const std::string& records_hash) override { return commit(records_hash); }
  Status finish(OutputRecord record) override;
  std::uint64_t durable_record_count() const override { return 0; }
  bool is_finished() const override { return false; }

 private:
  const EmbedStream stream_;
  std::uint64_t row_count_ = 0;
  std::string line_;
};

}  // namespace muster
