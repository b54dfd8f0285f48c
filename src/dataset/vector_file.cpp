// Binary formats are mapped: opening costs a read of the header, and rows are paged in as they are
// used. Lines of JSON have no rows of fixed size, so they are read and converted as a whole. An
// error of a header gets the file's name here; the parsers do not know it.

#include "dataset/vector_file.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "dataset/jsonl_vectors.h"
#include "dataset/vector_layout.h"
#include "dataset/vector_writer.h"

namespace muster {
namespace {

class MappedVectors final : public VectorFile {
 public:
  MappedVectors(MappedFile file, VectorLayout layout)
      : file_(std::move(file)),
        rows_(reinterpret_cast<const float*>(file_.bytes().data() + layout.offset)),
        layout_(layout) {}

  std::uint64_t row_count() const override { return layout_.row_count; }
  std::uint32_t dim() const override { return layout_.dim; }
  std::span<const float> row(std::uint64_t row) const override {
    MUSTER_CHECK(row < layout_.row_count);
    return {rows_ + row * layout_.dim, layout_.dim};
  }

 private:
  MappedFile file_;
  const float* rows_;
  VectorLayout layout_;
};

class ReadVectors final : public VectorFile {
 public:
  explicit ReadVectors(JsonlVectors vectors) : vectors_(std::move(vectors)) {}

  std::uint64_t row_count() const override { return vectors_.values.size() / vectors_.dim; }
  std::uint32_t dim() const override { return vectors_.dim; }
  std::span<const float> row(std::uint64_t row) const override {
    MUSTER_CHECK(row < row_count());
    return std::span(vectors_.values).subspan(row * vectors_.dim, vectors_.dim);
  }

 private:
  JsonlVectors vectors_;
};

}  // namespace

Result<std::unique_ptr<VectorFile>> VectorFile::open(const std::filesystem::path& path) {
  const auto format = MUSTER_TRY(vector_format_of(path));
  if (format == VectorFormat::Jsonl) {
    auto source = MUSTER_TRY(open_raw_source(path.string()));
    auto vectors = MUSTER_TRY(read_jsonl_vectors(std::move(source), path.string()));
    return std::unique_ptr<VectorFile>(std::make_unique<ReadVectors>(std::move(vectors)));
  }
  auto file = MUSTER_TRY(MappedFile::open(path));
  const auto layout =
      format == VectorFormat::Npy ? parse_npy(file.text()) : parse_safetensors(file.text());
  if (!layout) {
    return Error{layout.error().kind, fmt::format("{}: {}", path.string(), layout.error().message)};
  }
  return std::unique_ptr<VectorFile>(std::make_unique<MappedVectors>(std::move(file), *layout));
}

}  // namespace muster
