#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace muster {

/// "org/name" for the cache folder "models--org--name"; empty for any other name.
/// Source: huggingface_hub 1.x, file_download.py, `repo_folder_name`.
std::string hub_id_of_cache_folder(std::string_view folder_name);

/// What people call the model of a folder: the hub id where it is a snapshot in a hub cache, else
/// the folder's last name.
std::string model_name_of(const std::filesystem::path& folder);

}  // namespace muster
