#pragma once

#include <string>
#include <string_view>

namespace muster {

/// "org/name" for the cache folder "models--org--name"; empty for any other name.
/// Source: huggingface_hub 1.x, file_download.py, `repo_folder_name`.
std::string hub_id_of_cache_folder(std::string_view folder_name);

}  // namespace muster
