// One description for a folder, a GGUF file and a bare config. No weight is read: for
// safetensors and GGUF only the headers are parsed, whatever the size of the model. PyTorch
// archives are refused, as loading one runs code from the file.

#include "modelfile/model_description.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "modelfile/config_tensors.h"
#include "modelfile/decoder_config.h"
#include "modelfile/gguf.h"
#include "modelfile/hub_cache.h"
#include "modelfile/model_folder.h"
#include "modelfile/model_limits.h"
#include "modelfile/model_units.h"
#include "modelfile/safetensors.h"
#include "modelfile/shown_name.h"
#include "modelfile/transformer_config.h"
#include "modelfile/weight_files.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// Configs are a few kB; the limit only keeps a hostile file from filling the memory.
constexpr std::uint64_t kConfigBytesMax = 4ULL << 20;

// Puts the path before a parser's "config.json: ..." or "no tensor of ...".
template <typename T>
Result<T> within(const std::string& place, Result<T> outcome) {
  if (outcome) return outcome;
  return Error{outcome.error().kind, place + outcome.error().message};
}

// Tensors are sorted by name, so that a description does not depend on how a model was cut into
// shards.
Result<std::vector<WeightTensor>> read_headers(const fs::path& folder,
                                               const std::vector<std::string>& files) {
  std::map<std::string, WeightTensor> tensors;
  for (const auto& name : files) {
    const auto path = folder / name;
    const auto file = MUSTER_TRY(MappedFile::open(path));
    const auto header = MUSTER_TRY(
        within(path.string() + ": ", parse_safetensors_header(file.bytes(), file.bytes().size())));
    for (const auto& [tensor, entry] : header.tensors) {
      WeightTensor weight{tensor, std::string(tensor_type_name(entry.type)), entry.shape,
                          entry.size, is_plain_float(entry.type)};
      if (!tensors.emplace(tensor, std::move(weight)).second) {
        return Error{ErrorKind::Corrupt, fmt::format("{}: another shard has this tensor too: {}",
                                                     path.string(), shown_name(tensor))};
      }
    }
    if (tensors.size() > kTensorsMax) {
      return Error{ErrorKind::Corrupt,
                   fmt::format("{}: more than {} tensors", path.string(), kTensorsMax)};
    }
  }
  std::vector<WeightTensor> list;
  list.reserve(tensors.size());
  for (auto& [tensor, weight] : tensors) list.push_back(std::move(weight));
  return list;
}

/// Every tensor that the index names must be in one of the shards.
Status check_index(const fs::path& folder, const std::vector<WeightTensor>& tensors) {
  const auto index = folder / "model.safetensors.index.json";
  std::error_code ignored;
  if (fs::exists(folder / "model.safetensors", ignored) || !fs::exists(index, ignored)) {
    return Done{};
  }
  const auto text = MUSTER_TRY(read_regular_file(index));
  auto missing = MUSTER_TRY(parse_weight_map(text));
  for (const auto& tensor : tensors) missing.erase(tensor.name);
  if (missing.empty()) return Done{};
  const auto& [name, shard] = *missing.begin();
  return Error{ErrorKind::Corrupt, fmt::format("{}: {} is not in {}", index.string(),
                                               shown_name(name), shown_name(shard))};
}

Result<std::string> read_config(const fs::path& folder) {
  const auto path = folder / "config.json";
  auto text = read_regular_file(path, kConfigBytesMax);
  if (text || text.error().kind != ErrorKind::NotFound) return text;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    if (entry->path().extension() == ".gguf") {
      return Error{ErrorKind::NotFound,
                   fmt::format("{}: no config.json; name the GGUF file itself: {}", folder.string(),
                               entry->path().string())};
    }
  }
  return Error{ErrorKind::NotFound, fmt::format("{}: no config.json", folder.string())};
}

// By its weight files, or by its config alone where it has none.
Result<ModelDescription> describe_weights(const fs::path& folder, const std::string& place,
                                          const std::string& config) {
  if (has_no_weights(folder)) return within(place, describe_config(config));
  const auto files = MUSTER_TRY(weight_files(folder));
  auto tensors = MUSTER_TRY(read_headers(folder, files));
  MUSTER_TRY(check_index(folder, tensors));
  return within(place, describe_tensors(config, std::move(tensors)));
}

Result<ModelDescription> describe_folder(const fs::path& folder) {
  const auto config = MUSTER_TRY(read_config(folder));
  const auto place = folder.string() + "/";
  auto model = MUSTER_TRY(describe_weights(folder, place, config));
  if (model.shape.kind == ModelKind::Encoder && model.shape.length_max > 0) {
    model.text_length = MUSTER_TRY(read_text_length(folder, model.shape.length_max));
  }
  return model;
}

// What a config says that is computed; nullopt where that is refused, since a model that can only
// be planned is described all the same. Which tokens end a reply is of no matter here.
std::optional<DecoderSpec> decoder_of(std::string_view config_text) {
  auto decoder = parse_decoder_config(config_text, std::nullopt);
  if (!decoder) return std::nullopt;
  return *std::move(decoder);
}

Error refuse_archive(const std::string& path) {
  return Error{ErrorKind::Unsupported,
               fmt::format("{}: a PyTorch archive is not read because loading it can run code: "
                           "convert the model to safetensors and name its folder",
                           path)};
}

}  // namespace

Result<fs::path> find_model_source(std::string_view model) {
  const fs::path path{std::string(model)};
  std::error_code ignored;
  const bool is_file = fs::exists(path, ignored) && !fs::is_directory(path, ignored);
  if (!is_file) return find_model(model);
  const auto ending = path.extension();
  if (ending == ".gguf" || ending == ".json") return path;
  if (is_pytorch_archive(path.filename().string())) return refuse_archive(path.string());
  return Error{
      ErrorKind::InvalidArgument,
      fmt::format("{}: not a model: name a folder, a .gguf file or a config.json", path.string())};
}

Result<ModelDescription> describe_config(std::string_view config_text) {
  const auto config = MUSTER_TRY(parse_transformer_config(config_text));
  ModelDescription model;
  model.source_file = "config.json";
  model.shape = config.shape;
  model.weight_source = WeightSource::Config;
  model.tensors = MUSTER_TRY(config_tensors(config));
  MUSTER_TRY(group_into_units(config, model));
  model.decoder = decoder_of(config_text);
  return model;
}

Result<ModelDescription> describe_tensors(std::string_view config_text,
                                          std::vector<WeightTensor> tensors) {
  const auto config = MUSTER_TRY(parse_transformer_config(config_text));
  ModelDescription model;
  model.source_file = "config.json";
  model.shape = config.shape;
  model.tensors = std::move(tensors);
  MUSTER_TRY(within("config.json: ", group_into_units(config, model)));
  model.decoder = decoder_of(config_text);
  return model;
}

Result<ModelDescription> describe_model(const fs::path& source) {
  std::error_code ignored;
  if (source.extension() == ".gguf" && !fs::is_directory(source, ignored)) {
    auto model = MUSTER_TRY(describe_gguf(source));
    model.origin = source.string();
    return model;
  }
  if (fs::is_directory(source, ignored)) {
    auto model = MUSTER_TRY(describe_folder(source));
    model.name = model_name_of(source);
    model.origin = source.string();
    return model;
  }
  if (is_pytorch_archive(source.filename().string())) return refuse_archive(source.string());
  const auto text = MUSTER_TRY(read_file(source, kConfigBytesMax));
  auto outcome = describe_config(text);
  if (!outcome) {
    return Error{outcome.error().kind,
                 fmt::format("{}: {}", source.string(), outcome.error().message)};
  }
  outcome->name = source.string();
  outcome->origin = source.string();
  outcome->source_file = source.filename().string();
  return outcome;
}

}  // namespace muster
