// Vectors and the index beside them, in step: a row without its line, or a line that speaks of a
// row that is not there, would be of no use.

#include <optional>
#include <utility>

#include "dataset/json_text.h"
#include "dataset/vector_file.h"
#include "jobs/growing_text.h"
#include "jobs/output_parts.h"
#include "jobs/record_output.h"

namespace muster {
namespace {

class VectorParts final : public OutputParts {
 public:
  VectorParts(bool has_objects, std::unique_ptr<VectorWriter> vectors, GrowingText index)
      : has_objects_(has_objects), vectors_(std::move(vectors)), index_(std::move(index)) {}

  Status append(WindowRecord& record, std::uint64_t row) override {
    auto& entry = record.entry;
    entry.row = std::nullopt;
    if (!record.result.row.empty()) {
      MUSTER_TRY(append_row(entry, record.result.row));
      entry.row = row;
    }
    line_.clear();
    append_index_line(entry, line_);
    return index_.append(line_);
  }

  Status mark(RunStep& step) override {
    auto index = MUSTER_TRY(index_.mark());
    auto place = MUSTER_TRY(vectors_->mark());
    step.vectors_size = place.size;
    step.vectors_hash = std::move(place.rows_hash);
    step.index_size = index.size;
    step.index_hash = std::move(index.hash);
    return Done{};
  }

  Status make_durable() const override {
    MUSTER_TRY(index_.make_durable());
    return vectors_->make_durable();
  }

  Status finish(OutputRecord& record) override {
    auto whole = MUSTER_TRY(vectors_->finish());
    record.row_count = whole.row_count;
    record.vectors_size = whole.size;
    record.vectors_hash = std::move(whole.hash);
    record.index_size = index_.size();
    record.index_hash = index_.whole_hash();
    return Done{};
  }

 private:
  Status append_row(const IndexEntry& entry, std::span<const float> row) {
    if (!has_objects_) return vectors_->append(row);
    return vectors_->append_object(line_members(entry), row);
  }

  const bool has_objects_;
  std::unique_ptr<VectorWriter> vectors_;
  GrowingText index_;
  std::string line_;
};

}  // namespace

std::string line_members(const IndexEntry& entry) {
  std::string members;
  if (!entry.id.empty()) {
    members += R"("id":)";
    append_json_string(entry.id, members);
    members += ',';
  }
  if (!entry.fields.empty()) {
    members += R"("fields":)";
    members += entry.fields;
    members += ',';
  }
  return members;
}

OpenParts vector_parts(const RunFiles& files, const RowShape& shape) {
  return [=](const RunStep& step) -> Result<std::unique_ptr<OutputParts>> {
    std::optional<VectorWriter::Place> place;
    if (step.record_count > 0) {
      place = VectorWriter::Place{
          .row_count = step.row_count, .size = step.vectors_size, .rows_hash = ""};
    }
    auto vectors = MUSTER_TRY(VectorWriter::open(files.out_part, shape.format, shape.dim, place));
    auto index = MUSTER_TRY(GrowingText::open(files.index_part, step.index_size));
    return std::unique_ptr<OutputParts>(
        std::make_unique<VectorParts>(shape.has_objects, std::move(vectors), std::move(index)));
  };
}

}  // namespace muster
