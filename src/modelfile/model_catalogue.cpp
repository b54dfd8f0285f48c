// Public models by name: the facts of their config.json, compiled in.
// They serve when a model is named that is not on this machine: its memory can be planned before
// it is fetched. Files always win over the catalogue, because they are what will be loaded. The
// list is parsed once, on first use.
#include "modelfile/model_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "modelfile/hub_cache.h"
#include "modelfile/model_description.h"
#include "modelfile/model_folder.h"
#include "modelfile/models.inc"

namespace muster {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return result;
}

std::string behind_slash(const std::string& id) { return id.substr(id.find('/') + 1); }

std::vector<CatalogueModel> read_catalogue() {
  std::vector<CatalogueModel> models;
  for (const auto& entry : nlohmann::json::parse(kModels)) {
    CatalogueModel model;
    model.id = entry.at("id").get<std::string>();
    model.names = entry.value("names", std::vector<std::string>{});
    model.files = entry.at("files").get<std::vector<std::string>>();
    model.parameters = entry.at("parameters").get<std::uint64_t>();
    model.parameters_from = entry.at("parameters_from").get<std::string>();
    model.text_length = entry.value("text_length", 0U);
    model.config = entry.at("config").dump();
    models.push_back(std::move(model));
  }
  return models;
}

// Every name of a model, in small letters.
std::vector<std::string> names_of(const CatalogueModel& model) {
  std::vector<std::string> names{lower(model.id), lower(behind_slash(model.id))};
  for (const auto& name : model.names) names.push_back(lower(name));
  return names;
}

// The model of a folder or file that was found.
Result<FoundModel> found_at(const std::filesystem::path& source) {
  FoundModel found;
  found.model = MUSTER_TRY(describe_model(source));
  found.source = source;
  return found;
}

// A tuned model has the shape of the one that its name begins with: Qwen2.5-7B-Instruct. The
// longest such name.
std::optional<std::string> base_of(const std::string& wanted,
                                   const std::vector<std::string>& names) {
  std::optional<std::string> base;
  for (const auto& name : names) {
    if (wanted.starts_with(name + "-") && (!base || name.size() > base->size())) base = name;
  }
  return base;
}

Error not_found(std::string_view name) {
  const auto nearest = nearest_in_catalogue(name, 3);
  const auto cache = hub_cache();
  auto hint = nearest_hub_id_hint(name, cache);
  if (hint.empty() && !nearest.empty()) {
    hint = fmt::format("; did you mean {}?", fmt::join(nearest, ", "));
  }
  return Error{ErrorKind::NotFound,
               fmt::format("{}: neither a folder nor a model in the hub cache {}, nor one that "
                           "muster knows by name{}{}fetch it by muster pull {}",
                           name, cache.string(), hint, hint.empty() ? "; " : " Otherwise ",
                           name.find('/') == std::string_view::npos ? "ORG/NAME" : name)};
}

}  // namespace

const std::vector<CatalogueModel>& model_catalogue() {
  static const auto models = read_catalogue();
  return models;
}

const CatalogueModel* find_in_catalogue(std::string_view name) {
  const auto wanted = lower(name);
  for (const auto& model : model_catalogue()) {
    const auto names = names_of(model);
    if (std::find(names.begin(), names.end(), wanted) != names.end()) return &model;
  }
  return nullptr;
}

std::vector<std::string> nearest_in_catalogue(std::string_view name, std::size_t count) {
  const auto wanted = lower(behind_slash(std::string(name)));
  auto models = model_catalogue();
  std::vector<std::string> nearest;
  while (nearest.size() < count) {
    std::vector<std::string> names;
    for (const auto& model : models) {
      for (const auto& one : names_of(model)) names.push_back(behind_slash(one));
    }
    auto next = base_of(wanted, names);
    if (!next) next = nearest_name(wanted, names);
    if (!next) break;
    nearest.push_back(*next);
    std::erase_if(models, [&](const auto& model) {
      const auto its = names_of(model);
      return std::any_of(its.begin(), its.end(),
                         [&](const auto& one) { return behind_slash(one) == *next; });
    });
  }
  return nearest;
}

Result<ModelDescription> describe_catalogued(const CatalogueModel& model) {
  auto description = MUSTER_TRY(describe_config(model.config));
  description.name = model.id;
  description.text_length = model.text_length;
  description.origin = fmt::format("muster's catalogue ({} of {}), as its files are not here",
                                   fmt::join(model.files, " and "), model.id);
  return description;
}

Result<FoundModel> find_and_describe(std::string_view model) {
  const auto source = find_model_source(model);
  if (source) return found_at(*source);
  if (source.error().kind != ErrorKind::NotFound) return source.error();
  const auto* known = find_in_catalogue(model);
  if (known == nullptr) return is_hub_id(model) ? not_found(model) : source.error();
  if (const auto cached = find_model(known->id)) return found_at(*cached);
  FoundModel found;
  found.model = MUSTER_TRY(describe_catalogued(*known));
  found.pull_id = known->id;
  return found;
}

}  // namespace muster
