// `-o -`: the results of a run as lines of JSON, or vectors as bare numbers. Nothing is kept: what
// has been written is with the reader, and such a run cannot be resumed.

#include "jobs/stream_output.h"

#include <bit>
#include <span>

#include "dataset/json_text.h"
#include "dataset/vector_writer.h"
#include "jobs/reply_line.h"

namespace muster {

static_assert(std::endian::native == std::endian::little, "F32 is little-endian");

Status StreamOutput::append(WindowRecord& record) {
  auto& entry = record.entry;
  entry.row = std::nullopt;
  if (record.has_result()) entry.row = row_count_++;
  line_.clear();
  if (kind_ == OutputKind::Replies) {
    append_reply_line(record, line_);
    return stream_.write(line_);
  }
  const std::span<const float> row = record.result.row;
  if (stream_.format == StreamFormat::F32) {
    return stream_.write({reinterpret_cast<const char*>(row.data()), row.size_bytes()});
  }
  line_ = '{';
  if (entry.row) {
    line_ += line_members(entry);
    line_ += R"("embedding":)";
    append_json_row(row, line_);
  } else {
    line_ += R"("embedding":null,"reason":)";
    append_json_string(entry.reason, line_);
  }
  line_ += "}\n";
  return stream_.write(line_);
}

// A reader should not wait for a buffer to fill.
Status StreamOutput::commit(const std::string& /*records_hash*/) { return stream_.flush(); }

Status StreamOutput::finish(OutputRecord record) { return commit(record.records_hash); }

}  // namespace muster
