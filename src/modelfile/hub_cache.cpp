#include "modelfile/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "modelfile/model_folder.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Source: huggingface_hub 1.x, constants.py (HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME).
fs::path hub_cache() {
  if (const auto cache = environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const auto home = environment("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  auto base = fs::path(environment("XDG_CACHE_HOME"));
  if (base.empty()) base = fs::path(environment("HOME")) / ".cache";
  return base / "huggingface" / "hub";
}

// "name" or "org/name" of the characters the hub allows; "." and ".." are paths.
bool is_hub_id(std::string_view model) {
  const auto parts = split(model, '/');
  return parts.size() <= 2 && std::all_of(parts.begin(), parts.end(), [](const auto& part) {
           return !part.empty() && part[0] != '.' && part.find("--") == std::string::npos &&
                  std::all_of(part.begin(), part.end(), [](unsigned char c) {
                    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                  });
         });
}

std::string cache_name(std::string id) {
  if (const auto slash = id.find('/'); slash != std::string::npos) id.replace(slash, 1, "--");
  return "models--" + id;
}

// The snapshot that refs/main names; empty when the cache has none.
fs::path newest_snapshot(const fs::path& model) {
  const auto revision = read_file(model / "refs" / "main", 4096);
  if (!revision) return {};
  const auto name = std::string(trim(*revision));
  if (name.empty() || name.find('/') != std::string::npos || name[0] == '.') return {};
  const auto snapshot = model / "snapshots" / name;
  std::error_code ignored;
  return fs::is_directory(snapshot, ignored) ? snapshot : fs::path();
}

std::vector<std::string> cached_ids(const fs::path& cache) {
  std::vector<std::string> ids;
  std::error_code ignored;
  for (fs::directory_iterator entry(cache, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    auto id = hub_id_of_cache_folder(entry->path().filename().string());
    if (!id.empty()) ids.push_back(std::move(id));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// The nearest cached id, also when the caller left the organisation out.
std::string nearest_hint(std::string_view model, const std::vector<std::string>& ids) {
  auto nearest = nearest_name(model, ids);
  if (!nearest) {
    std::vector<std::string> names;
    for (const auto& id : ids) names.push_back(id.substr(id.find('/') + 1));
    const auto name = nearest_name(model.substr(model.find('/') + 1), names);
    const auto at = std::find(names.begin(), names.end(), name.value_or(""));
    if (at != names.end()) nearest = ids[static_cast<std::size_t>(at - names.begin())];
  }
  return nearest ? fmt::format("; did you mean {}?", *nearest) : std::string();
}

}  // namespace

std::string hub_id_of_cache_folder(std::string_view folder_name) {
  constexpr std::string_view kPrefix = "models--";
  if (!folder_name.starts_with(kPrefix)) return {};
  const auto name = folder_name.substr(kPrefix.size());
  const auto gap = name.find("--");
  if (gap == std::string_view::npos) return std::string(name);
  return fmt::format("{}/{}", name.substr(0, gap), name.substr(gap + 2));
}

std::string model_name_of(const fs::path& folder) {
  // canonical() resolves ".", a trailing slash and links.
  std::error_code ignored;
  const auto place = fs::canonical(folder, ignored);
  // A snapshot lies at models--org--name/snapshots/<revision>.
  const auto snapshots = place.parent_path();
  std::string id;
  if (snapshots.filename() == "snapshots") {
    id = hub_id_of_cache_folder(snapshots.parent_path().filename().string());
  }
  return id.empty() ? place.filename().string() : id;
}

Result<fs::path> find_model(std::string_view model) {
  const fs::path folder{std::string(model)};
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return folder;
  if (fs::exists(folder, ignored)) {
    return Error{ErrorKind::InvalidArgument, fmt::format("{}: not a model folder", model)};
  }
  if (!is_hub_id(model)) {
    return Error{ErrorKind::NotFound, fmt::format("{}: no such model folder", model)};
  }

  const auto cache = hub_cache();
  std::vector<std::string> ids{std::string(model)};
  if (model.find('/') == std::string_view::npos) {
    ids.insert(ids.begin(), fmt::format("sentence-transformers/{}", model));
  }
  for (const auto& id : ids) {
    const auto snapshot = newest_snapshot(cache / cache_name(id));
    if (!snapshot.empty()) return snapshot;
  }
  return Error{ErrorKind::NotFound,
               fmt::format("{}: neither a folder nor a model in the hub cache {}{}", model,
                           cache.string(), nearest_hint(model, cached_ids(cache)))};
}

}  // namespace muster
