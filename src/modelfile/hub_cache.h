#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// "org/name" for the cache folder "models--org--name"; empty for any other name.
/// Source: huggingface_hub 1.x, file_download.py, `repo_folder_name`.
std::string hub_id_of_cache_folder(std::string_view folder_name);

/// "models--org--name" for "org/name".
std::string hub_cache_folder_name(std::string id);

/// Whether `model` is "org/name" or "name" as the hub allows it.
/// Source: huggingface_hub 2.x, utils/_validators.py, `validate_repo_id`.
bool is_hub_id(std::string_view model);

/// Where huggingface_hub keeps its files: `HF_HOME`, else `$XDG_CACHE_HOME/huggingface`, else
/// ~/.cache/huggingface. A variable may name `~`, `$NAME` and `${NAME}`; an empty one is not set.
/// Source: huggingface_hub 2.x, constants.py.
std::filesystem::path hub_home();

/// Where models lie: `HF_HUB_CACHE`, else the older `HUGGINGFACE_HUB_CACHE`, else `hub` in
/// `hub_home`.
std::filesystem::path hub_cache();

/// A path of the environment as huggingface_hub reads it: `~`, `$NAME` and `${NAME}` stand for what
/// they name; what is not set stays as it is written.
std::filesystem::path expand_path(std::string_view text);

/// The ids of the models in `cache` that have a snapshot of main, sorted; none where it is no
/// folder.
std::vector<std::string> cached_hub_ids(const std::filesystem::path& cache);

/// "; did you mean org/name?" with the id in `cache` that is most like `model`, also when the
/// organisation is left out or another; empty where none is near.
std::string nearest_hub_id_hint(std::string_view model, const std::filesystem::path& cache);

/// What people call the model of a folder: the hub id where it is a snapshot in a hub cache, else
/// the folder's last name.
std::string model_name_of(const std::filesystem::path& folder);

}  // namespace muster
