// The cache of huggingface_hub, read but never written. Paths follow its rules exactly,
// including its environment variables, so that a model fetched by another tool is found. Only
// the snapshot that refs/main names counts, and a name there that could lead out of the folder
// is ignored.

#include "modelfile/hub_cache.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "modelfile/model_catalogue.h"
#include "modelfile/model_folder.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// As the shell's ~ where HOME is not set. Source: Python's posixpath.expanduser.
std::string home_folder() {
  if (auto home = environment("HOME"); !home.empty()) return home;
  const passwd* user = getpwuid(getuid());
  return user != nullptr && user->pw_dir != nullptr ? user->pw_dir : "";
}

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// "NAME" at the start of `text`, or of "{NAME}"; `size` is what it takes with its braces, 0 for
// neither.
std::string variable_at(std::string_view text, std::size_t& size) {
  size = 0;
  if (text.starts_with('{')) {
    const auto close = text.find('}');
    if (close == std::string_view::npos) return {};
    size = close + 1;
    return std::string(text.substr(1, close - 1));
  }
  while (size < text.size() && is_name_character(text[size])) ++size;
  return std::string(text.substr(0, size));
}

bool is_hub_id_part(std::string_view part) {
  constexpr std::size_t kPartSizeMax = 96;
  const auto is_edge = [](char c) { return c == '-' || c == '.'; };
  return !part.empty() && part.size() <= kPartSizeMax && !is_edge(part.front()) &&
         !is_edge(part.back()) && part.find("--") == std::string_view::npos &&
         part.find("..") == std::string_view::npos &&
         std::all_of(part.begin(), part.end(),
                     [](char c) { return is_name_character(c) || c == '-' || c == '.'; });
}

// The snapshot that refs/main names; empty when the cache has none.
fs::path newest_snapshot(const fs::path& model) {
  const auto revision = read_regular_file(model / "refs" / "main", 4096);
  if (!revision) return {};
  const auto name = std::string(trim(*revision));
  if (name.empty() || name.find('/') != std::string::npos || name[0] == '.') return {};
  const auto snapshot = model / "snapshots" / name;
  std::error_code ignored;
  return fs::is_directory(snapshot, ignored) ? snapshot : fs::path();
}

// Under what ids a model may lie in the cache. A name alone is first what sentence-transformers
// make of it, then what the catalogue knows: "bge-m3" is BAAI/bge-m3.
std::vector<std::string> ids_of(std::string_view model) {
  std::vector<std::string> ids{std::string(model)};
  if (model.find('/') != std::string_view::npos) return ids;
  ids.insert(ids.begin(), fmt::format("sentence-transformers/{}", model));
  if (const auto* known = find_in_catalogue(model)) ids.push_back(known->id);
  return ids;
}

// The command to paste. Who has a model of an unknown name can only be guessed.
std::string pull_command_of(std::string_view model, ModelUse use) {
  const bool is_whole = model.find('/') != std::string_view::npos;
  const auto* known = is_whole ? nullptr : find_in_catalogue(model);
  if (known != nullptr) return fmt::format("muster pull {}", known->id);
  if (is_whole) return fmt::format("muster pull {}", model);
  if (use == ModelUse::Generate) return "muster pull ORG/NAME, or give its .gguf file";
  return fmt::format("muster pull sentence-transformers/{}, or under another organisation", model);
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

}  // namespace

std::vector<std::string> cached_hub_ids(const fs::path& cache) {
  auto ids = cached_ids(cache);
  std::erase_if(ids, [&](const std::string& id) {
    return newest_snapshot(cache / hub_cache_folder_name(id)).empty();
  });
  return ids;
}

std::string hub_id_of_cache_folder(std::string_view folder_name) {
  constexpr std::string_view kPrefix = "models--";
  if (!folder_name.starts_with(kPrefix)) return {};
  const auto name = folder_name.substr(kPrefix.size());
  const auto gap = name.find("--");
  if (gap == std::string_view::npos) return std::string(name);
  return fmt::format("{}/{}", name.substr(0, gap), name.substr(gap + 2));
}

std::string hub_cache_folder_name(std::string id) {
  if (const auto slash = id.find('/'); slash != std::string::npos) id.replace(slash, 1, "--");
  return "models--" + id;
}

bool is_hub_id(std::string_view model) {
  const auto parts = split(model, '/');
  return parts.size() <= 2 && !model.ends_with(".git") &&
         std::all_of(parts.begin(), parts.end(), is_hub_id_part);
}

fs::path expand_path(std::string_view text) {
  std::string path;
  if (text == "~" || text.starts_with("~/")) {
    path = home_folder();
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    std::size_t size = 0;
    const auto name = text[0] == '$' ? variable_at(text.substr(1), size) : std::string();
    if (const char* value = name.empty() ? nullptr : std::getenv(name.c_str()); value != nullptr) {
      path += value;
      text.remove_prefix(1 + size);
    } else {
      path += text[0];
      text.remove_prefix(1);
    }
  }
  return path;
}

fs::path hub_home() {
  if (const auto home = environment("HF_HOME"); !home.empty()) return expand_path(home);
  const auto base = environment("XDG_CACHE_HOME");
  return (base.empty() ? fs::path(home_folder()) / ".cache" : expand_path(base)) / "huggingface";
}

fs::path hub_cache() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const auto cache = environment(name); !cache.empty()) return expand_path(cache);
  }
  return hub_home() / "hub";
}

// First whole ids are compared, then names without the organisation: people remember a model's
// name better than who published it.
std::string nearest_hub_id_hint(std::string_view model, const fs::path& cache) {
  const auto ids = cached_ids(cache);
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

Result<fs::path> find_model(std::string_view model, ModelUse use) {
  const fs::path folder{std::string(model)};
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return folder;
  if (model.ends_with(".gguf") && fs::is_regular_file(folder, ignored)) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}: a GGUF file is a model that generates (muster generate, muster "
                             "serve NAME=FILE); one that embeds is a model folder",
                             model)};
  }
  if (fs::exists(folder, ignored)) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: {}, not a model folder", model, kind_of_file(folder))};
  }
  if (!is_hub_id(model)) {
    return Error{ErrorKind::NotFound, fmt::format("{}: no such model folder", model)};
  }

  const auto cache = hub_cache();
  const auto ids = ids_of(model);
  for (const auto& id : ids) {
    const auto snapshot = newest_snapshot(cache / hub_cache_folder_name(id));
    if (!snapshot.empty()) return snapshot;
  }
  const auto hint = nearest_hub_id_hint(model, cache);
  return Error{ErrorKind::NotFound,
               fmt::format("{}: neither a folder nor a model in the hub cache {}{}{}fetch it by {}",
                           model, cache.string(), hint, hint.empty() ? "; " : " Otherwise ",
                           pull_command_of(model, use))};
}

}  // namespace muster
