// One view of two kinds of files. Types of safetensors are ggml's types of the same name, so that
// one function turns all of them into floats.

#include "engine/decoder/tensor_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "modelfile/dequantize.h"

namespace muster::engine {
namespace {

const GgmlType* ggml_type_of(TensorType type) {
  switch (type) {
    case TensorType::F32:
      return find_ggml_type(static_cast<std::uint32_t>(GgmlTypeId::F32));
    case TensorType::F16:
      return find_ggml_type(static_cast<std::uint32_t>(GgmlTypeId::F16));
    case TensorType::BF16:
      return find_ggml_type(static_cast<std::uint32_t>(GgmlTypeId::BF16));
    default:
      return nullptr;
  }
}

bool is_shape(const std::vector<std::int64_t>& shape, std::size_t rows, std::size_t columns) {
  const auto r = static_cast<std::int64_t>(rows);
  const auto c = static_cast<std::int64_t>(columns);
  if (shape.size() == 1) return r == 1 && shape[0] == c;
  return shape.size() == 2 && shape[0] == r && shape[1] == c;
}

}  // namespace

void SourceMatrix::read_row(std::size_t row, std::span<float> out) const {
  if (!is_transposed) {
    // Sizes and type were checked when the matrix was found.
    MUSTER_CHECK(dequantize(*type, data.subspan(row * row_bytes(), row_bytes()), out).has_value());
    return;
  }
  const std::size_t size = type->block_bytes;
  for (std::size_t k = 0; k < column_count; ++k) {
    const auto element = data.subspan((k * row_count + row) * size, size);
    MUSTER_CHECK(dequantize(*type, element, out.subspan(k, 1)).has_value());
  }
}

Result<TensorSource> TensorSource::open(const std::filesystem::path& source) {
  std::error_code ignored;
  if (std::filesystem::is_directory(source, ignored)) {
    return TensorSource(MUSTER_TRY(ModelWeights::open(source)));
  }
  return TensorSource(MUSTER_TRY(GgufFile::open(source)));
}

bool TensorSource::has(std::string_view name) const {
  return std::visit([&](const auto& files) { return files.find(name) != nullptr; }, files_);
}

Result<TensorSource::Found> TensorSource::find(std::string_view name) const {
  Found found;
  std::string_view type_name;
  if (const auto* gguf = std::get_if<GgufFile>(&files_)) {
    if (const auto* view = gguf->find(name)) {
      found = {view->type, &view->shape, view->data};
      type_name = view->type->name;
      if (!can_dequantize(*view->type)) found.type = nullptr;
    }
  } else if (const auto* view = std::get<ModelWeights>(files_).find(name)) {
    found = {ggml_type_of(view->type), &view->shape, view->data};
    type_name = tensor_type_name(view->type);
  }
  if (found.shape == nullptr) {
    return Error{ErrorKind::Corrupt, fmt::format("the model has no tensor {}", name)};
  }
  if (found.type == nullptr) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("tensor {} has a type that is not computed: {}", name, type_name)};
  }
  return found;
}

Result<SourceMatrix> TensorSource::matrix(std::string_view name, std::size_t rows,
                                          std::size_t columns) const {
  const auto found = MUSTER_TRY(find(name));
  if (!is_shape(*found.shape, rows, columns)) {
    return Error{ErrorKind::Corrupt, fmt::format("tensor {} must be [{}, {}]: [{}]", name, rows,
                                                 columns, fmt::join(*found.shape, ", "))};
  }
  return SourceMatrix{found.type, rows, columns, found.data};
}

Result<SourceMatrix> TensorSource::transposed_matrix(std::string_view name, std::size_t rows,
                                                     std::size_t columns) const {
  auto stored = MUSTER_TRY(matrix(name, columns, rows));
  if (stored.type->block_elements != 1) {
    return Error{
        ErrorKind::Unsupported,
        fmt::format("tensor {} has a type that is not computed: {}", name, stored.type->name)};
  }
  return SourceMatrix{stored.type, rows, columns, stored.data, true};
}

Result<std::vector<SourceMatrix>> TensorSource::stack(std::string_view name, std::size_t count,
                                                      std::size_t rows, std::size_t columns) const {
  const auto found = MUSTER_TRY(find(name));
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(count),
                                        static_cast<std::int64_t>(rows),
                                        static_cast<std::int64_t>(columns)};
  if (*found.shape != shape) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("tensor {} must be [{}]: [{}]", name, fmt::join(shape, ", "),
                             fmt::join(*found.shape, ", "))};
  }
  SourceMatrix matrix{found.type, rows, columns, {}};
  const std::size_t size = rows * matrix.row_bytes();
  std::vector<SourceMatrix> matrices;
  for (std::size_t i = 0; i < count; ++i) {
    matrix.data = found.data.subspan(i * size, size);
    matrices.push_back(matrix);
  }
  return matrices;
}

Result<std::vector<float>> TensorSource::vector(std::string_view name, std::size_t size) const {
  const auto found = MUSTER_TRY(matrix(name, 1, size));
  std::vector<float> values(size);
  found.read_row(0, values);
  return values;
}

void TensorSource::let_go(const SourceMatrix& matrix) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(matrix.data.data());
  const auto begin = (address + page - 1) / page * page;
  const auto end = (address + matrix.data.size()) / page * page;
  // Only advice: the pages stay until the system wants them.
  if (begin < end) {
    (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // NOLINT
  }
}

}  // namespace muster::engine
