// Which files hold the weights. A shard's name comes from an index that may be downloaded, so a
// name with a slash or a leading dot is refused: it could point outside the folder. Other
// formats are looked for only to say in the error what is there and how to convert it.

#include "modelfile/weight_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "modelfile/shown_name.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

// An index has one line a tensor; the limit only keeps a hostile file from filling the memory.
constexpr std::uint64_t kIndexBytesMax = 64ULL << 20;

// What a trainer leaves beside the weights.
bool is_training_state(std::string_view file_name) {
  constexpr std::array<std::string_view, 5> kStarts{"training_args", "optimizer", "scheduler",
                                                    "rng_state", "scaler"};
  return std::any_of(kStarts.begin(), kStarts.end(),
                     [&](auto start) { return file_name.starts_with(start); });
}

/// The first name, by the alphabet, of a file that could hold weights; empty when there is none.
std::string other_weights(const fs::path& folder) {
  std::string first;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    auto name = entry->path().filename().string();
    const bool holds_weights = name.ends_with(".safetensors") || is_pytorch_archive(name) ||
                               name.ends_with(".bin.index.json");
    if (holds_weights && (first.empty() || name < first)) first = std::move(name);
  }
  return first;
}

}  // namespace

bool is_pytorch_archive(std::string_view file_name) {
  if (is_training_state(file_name)) return false;
  constexpr std::array<std::string_view, 4> kEndings{".bin", ".pt", ".pth", ".ckpt"};
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](auto ending) { return file_name.ends_with(ending); });
}

Result<std::map<std::string, std::string>> parse_weight_map(std::string_view text) {
  const auto root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object() || !root.contains("weight_map") || !root["weight_map"].is_object()) {
    return corrupt_error("no object weight_map");
  }
  std::map<std::string, std::string> shards;
  for (const auto& [tensor, item] : root["weight_map"].items()) {
    if (!item.is_string()) return corrupt_error("weight_map holds something other than file names");
    auto name = item.get<std::string>();
    if (name.empty() || name[0] == '.' ||
        name.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
      return corrupt_error(fmt::format("weight_map holds a path: {}", shown_name(name)));
    }
    shards.emplace(tensor, std::move(name));
  }
  if (shards.empty()) return corrupt_error("weight_map is empty");
  return shards;
}

Result<std::vector<std::string>> parse_weight_index(std::string_view text) {
  std::set<std::string> names;
  auto shards = MUSTER_TRY(parse_weight_map(text));
  for (auto& [tensor, name] : shards) names.insert(std::move(name));
  return std::vector<std::string>(names.begin(), names.end());
}

bool has_no_weights(const fs::path& folder) {
  std::error_code ignored;
  return !fs::exists(folder / kIndex, ignored) && other_weights(folder).empty();
}

Result<std::vector<std::string>> weight_files(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / kSingle, ignored)) return std::vector<std::string>{std::string(kSingle)};

  const auto index = folder / kIndex;
  if (fs::exists(index, ignored)) {
    const auto text = MUSTER_TRY(read_regular_file(index, kIndexBytesMax));
    auto names = parse_weight_index(text);
    if (names) return names;
    return corrupt_error(fmt::format("{}: {}", index.string(), names.error().message));
  }
  const auto other = other_weights(folder);
  if (other.ends_with(".safetensors")) {
    return Error{ErrorKind::NotFound, fmt::format("{}: no {} and no {}, only {}", folder.string(),
                                                  kSingle, kIndex, other)};
  }
  if (!other.empty()) {
    return Error{ErrorKind::NotFound,
                 fmt::format("{}: no {}, and {} is not read because loading it can run code: "
                             "convert it to safetensors",
                             folder.string(), kSingle, other)};
  }
  return Error{ErrorKind::NotFound, fmt::format("{}: no {}", folder.string(), kSingle)};
}

}  // namespace muster
