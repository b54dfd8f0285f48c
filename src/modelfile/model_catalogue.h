#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/model_weights.h"

namespace muster {

/// A public model whose config.json is known without its files: what placement and memory depend
/// on, and nothing else of it.
///
/// Source: data/models.json, compiled in; data/README.md says how it was made and checked.
struct CatalogueModel {
  std::string id;                  // at the hub: "meta-llama/Meta-Llama-3-8B"
  std::vector<std::string> names;  // other names: "llama-3-8b"
  std::vector<std::string> files;  // of the repository that the facts are from: "config.json"
  std::uint64_t parameters = 0;    // as published, rounded or not
  std::string parameters_from;     // where
  std::uint32_t text_length = 0;   // tokens that texts are cut to; 0: as many as config.json has
  std::string config;              // the text of config.json, as far as it is known
};

/// All models of the catalogue, in the order of the file. Threads: thread-safe.
const std::vector<CatalogueModel>& model_catalogue();

/// The model of this id, of its part behind the slash or of another of its names, upper and lower
/// case alike; nullptr for none. Threads: thread-safe.
const CatalogueModel* find_in_catalogue(std::string_view name);

/// Up to `count` names of the catalogue that are most like `name`, the nearest first.
std::vector<std::string> nearest_in_catalogue(std::string_view name, std::size_t count);

/// Describes a model of the catalogue as `describe_config` does, under its id.
/// Errors: none for what is in the catalogue; tests describe all of it.
Result<ModelDescription> describe_catalogued(const CatalogueModel& model);

/// A model's description, and whence.
struct FoundModel {
  ModelDescription model;
  std::filesystem::path source;        // the folder or file; empty for the catalogue's
  std::optional<std::string> pull_id;  // of the catalogue: what `muster pull` fetches
};

/// Describes what MODEL names: what `find_model_source` finds, a folder, file or cached model, else
/// a model of the catalogue, its files from the hub cache if they are there.
///
/// Errors: those of `describe_model`; NotFound for what is nowhere, with the names of the catalogue
/// that are nearest.
Result<FoundModel> find_and_describe(std::string_view model);

}  // namespace muster
