// The weights of a folder as views into mapped files. Opening parses the headers only; pages are
// read when a tensor is used. A name that occurs in two shards is an error, since which of them
// a loader takes would be chance. A view lives as long as this object, which owns the maps.

#include "modelfile/safetensors.h"

#include <fmt/format.h>

#include <utility>

#include "modelfile/shown_name.h"
#include "modelfile/weight_files.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<ModelWeights> ModelWeights::open(const fs::path& model_folder) {
  ModelWeights weights;
  for (const auto& name : MUSTER_TRY(weight_files(model_folder))) {
    const auto path = model_folder / name;
    auto file = MUSTER_TRY(MappedFile::open(path));
    const auto header = parse_safetensors_header(file.bytes(), file.bytes().size());
    if (!header) return corrupt_error(fmt::format("{}: {}", path.string(), header.error().message));
    for (const auto& [tensor, entry] : header->tensors) {
      TensorView view{entry.type, entry.shape, file.bytes().subspan(entry.begin, entry.size)};
      if (!weights.tensors_.emplace(tensor, std::move(view)).second) {
        return corrupt_error(fmt::format("{}: another shard has this tensor too: {}", path.string(),
                                         shown_name(tensor)));
      }
    }
    weights.files_.push_back(std::move(file));
  }
  return weights;
}

const TensorView* ModelWeights::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace muster
