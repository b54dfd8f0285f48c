// `muster embed -o -`: the rows of a run as lines of JSON or as bare numbers. Nothing is kept: what
// has been written is with the reader, and such a run cannot be resumed.

#include "jobs/stream_output.h"

#include <bit>

#include "dataset/json_text.h"
#include "dataset/vector_writer.h"

namespace muster {

static_assert(std::endian::native == std::endian::little, "F32 is little-endian");

Status StreamOutput::append(IndexEntry& entry, std::span<const float> row) {
  entry.row = std::nullopt;
  if (!row.empty()) entry.row = row_count_++;
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
