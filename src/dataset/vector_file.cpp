// Binary formats are mapped: opening costs a read of the header, and rows are paged in as they are
// used. Lines of JSON have no rows of fixed size, so they are read and converted as a whole. An
// error of a header gets the file's name here; the parsers do not know it.

#include "dataset/vector_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "base/mapped_read.h"
#include "dataset/file_hash.h"
#include "dataset/jsonl_vectors.h"
#include "dataset/vector_layout.h"
#include "dataset/vector_writer.h"

namespace muster {
namespace {

class MappedVectors final : public VectorFile {
 public:
  MappedVectors(std::string name, MappedFile file, VectorLayout layout)
      : name_(std::move(name)),
        file_(std::move(file)),
        rows_(reinterpret_cast<const float*>(file_.bytes().data() + layout.offset)),
        layout_(layout) {}

  std::uint64_t row_count() const override { return layout_.row_count; }
  std::uint32_t dim() const override { return layout_.dim; }
  std::span<const float> row(std::uint64_t row) const override {
    MUSTER_CHECK(row < layout_.row_count);
    return {rows_ + row * layout_.dim, layout_.dim};
  }
  Status read_rows(const std::function<void()>& work) const override {
    if (read_mapped(file_.bytes(), work)) return Done{};
    return cut_short(name_);
  }

 private:
  std::string name_;
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
  Status read_rows(const std::function<void()>& work) const override {
    work();
    return Done{};
  }

 private:
  JsonlVectors vectors_;
};

// What the file begins with, copied: parsers cannot be left in the middle of a read.
Result<std::string> head_of(const MappedFile& file, VectorFormat format, const std::string& name) {
  const auto text = file.text();
  std::string head;
  const auto copy = [&](std::size_t size) -> Status {
    head.resize(std::min(size, text.size()));
    const bool is_there =
        read_mapped(file.bytes(), [&] { std::copy_n(text.begin(), head.size(), head.begin()); });
    return is_there ? Status(Done{}) : Status(cut_short(name));
  };
  MUSTER_TRY(copy(kHeadBegin));
  MUSTER_TRY(copy(format == VectorFormat::Npy ? npy_head_size(head) : safetensors_head_size(head)));
  return head;
}

}  // namespace

Result<std::unique_ptr<VectorFile>> VectorFile::open(const std::filesystem::path& path) {
  const auto format = MUSTER_TRY(vector_format_of(path));
  if (format == VectorFormat::Jsonl) {
    auto source = MUSTER_TRY(open_raw_source(path.string()));
    auto vectors = MUSTER_TRY(read_jsonl_vectors(std::move(source), path.string()));
    return std::unique_ptr<VectorFile>(std::make_unique<ReadVectors>(std::move(vectors)));
  }
  auto file = MUSTER_TRY(MappedFile::open(path));
  const auto head = MUSTER_TRY(head_of(file, format, path.string()));
  const auto size = file.bytes().size();
  const auto layout =
      format == VectorFormat::Npy ? parse_npy(head, size) : parse_safetensors(head, size);
  if (!layout) {
    return Error{layout.error().kind, fmt::format("{}: {}", path.string(), layout.error().message)};
  }
  return std::unique_ptr<VectorFile>(
      std::make_unique<MappedVectors>(path.string(), std::move(file), *layout));
}

}  // namespace muster
