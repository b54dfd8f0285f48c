// Which files of a repository a pull means. The usual choice is a list of known names rather than
// everything but weights: repositories hold the same weights in several formats, and one of them is
// enough. What runs code when it is loaded, or is one of many variants, is never picked by itself;
// the refusal names the files, so that a pattern can be written from it.

#include "hub/file_choice.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/text.h"
#include "modelfile/weight_files.h"

namespace muster {
namespace {

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::size_t kNamesShown = 3;

// What transformers' tokenizers and processors are saved as, and the configs of a model.
// Source: transformers 5, tokenization_utils_base.py and utils/__init__.py (the *_NAME constants).
constexpr std::array<std::string_view, 14> kNames{"config.json",
                                                  "generation_config.json",
                                                  "tokenizer.json",
                                                  "tokenizer_config.json",
                                                  "special_tokens_map.json",
                                                  "added_tokens.json",
                                                  "vocab.txt",
                                                  "vocab.json",
                                                  "merges.txt",
                                                  "chat_template.jinja",
                                                  "chat_template.json",
                                                  "preprocessor_config.json",
                                                  "modules.json",
                                                  "config_sentence_transformers.json"};

bool is_config_or_tokenizer(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         name.ends_with(".model") ||                                         // SentencePiece
         (name.starts_with("sentence_") && name.ends_with("_config.json"));  // the length limit
}

// "1_Pooling/config.json": a module's folder as sentence-transformers names it, from 1 on.
bool is_of_sentence_module(std::string_view path) {
  const auto slash = path.find('/');
  const auto underscore = path.find('_');
  if (slash == std::string_view::npos || underscore == 0 || underscore > slash) return false;
  const auto number = path.substr(0, underscore);
  const auto name = path.substr(slash + 1);
  return std::all_of(number.begin(), number.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; }) &&
         (name == "config.json" || name == kSingle);
}

bool is_in_root(const HubFile& file) { return file.path.find('/') == std::string::npos; }

bool has_file(const HubListing& listing, std::string_view path) {
  return std::any_of(listing.files.begin(), listing.files.end(),
                     [&](const auto& file) { return file.path == path; });
}

// "model-00001-of-00003.safetensors".
bool is_shard(std::string_view name) {
  return name.starts_with("model-") && name.ends_with(".safetensors") &&
         name.find("-of-") != std::string_view::npos;
}

// "a.gguf, b.gguf, c.gguf and 5 more" of the root's files that `is_wanted` picks; empty for none.
template <typename Predicate>
std::string names_in_root(const HubListing& listing, Predicate is_wanted) {
  std::vector<std::string> names;
  std::size_t count = 0;
  for (const auto& file : listing.files) {
    if (!is_in_root(file) || !is_wanted(file.path)) continue;
    if (++count <= kNamesShown) names.push_back(file.path);
  }
  auto text = fmt::format("{}", fmt::join(names, ", "));
  return count > kNamesShown ? text + fmt::format(" and {} more", count - kNamesShown) : text;
}

Status check_weights(std::string_view model, const HubListing& listing) {
  const auto ggufs =
      names_in_root(listing, [](const auto& name) { return name.ends_with(".gguf"); });
  if (!ggufs.empty()) {
    return Error{
        ErrorKind::Unsupported,
        fmt::format("{} has no safetensors, but GGUF files: choose with --file: {}", model, ggufs)};
  }
  const auto archives = names_in_root(listing, is_pytorch_archive);
  if (archives.empty()) return Done{};  // a config alone can be planned
  return Error{ErrorKind::Unsupported,
               fmt::format("{} has no safetensors, only what can run code when it is loaded and is "
                           "fetched by name alone (--file): {}",
                           model, archives)};
}

Result<std::vector<HubFile>> usual_files(std::string_view model, const HubListing& listing) {
  const bool has_single = has_file(listing, kSingle);
  const bool has_index = !has_single && has_file(listing, kIndex);
  if (!has_single && !has_index) MUSTER_TRY(check_weights(model, listing));
  std::vector<HubFile> chosen;
  for (const auto& file : listing.files) {
    const bool is_weight = has_single ? file.path == kSingle
                                      : has_index && (file.path == kIndex || is_shard(file.path));
    const bool is_wanted = is_in_root(file) ? is_weight || is_config_or_tokenizer(file.path)
                                            : is_of_sentence_module(file.path);
    if (is_wanted) chosen.push_back(file);
  }
  if (chosen.empty()) {
    return Error{ErrorKind::NotFound,
                 fmt::format("{} has neither a config nor weights that muster reads; --file names "
                             "other files",
                             model)};
  }
  return chosen;
}

bool matches(const std::string& pattern, const std::string& path) {
  const auto whole = pattern.ends_with('/') ? pattern + "*" : pattern;
  return ::fnmatch(whole.c_str(), path.c_str(), 0) == 0;
}

Result<std::vector<HubFile>> matching_files(std::string_view model, const HubListing& listing,
                                            std::span<const std::string> patterns) {
  std::vector<bool> is_chosen(listing.files.size());
  for (const auto& pattern : patterns) {
    bool has_match = false;
    for (std::size_t i = 0; i < listing.files.size(); ++i) {
      if (!matches(pattern, listing.files[i].path)) continue;
      has_match = is_chosen[i] = true;
    }
    if (has_match) continue;
    std::vector<std::string> paths;
    for (const auto& file : listing.files) paths.push_back(file.path);
    const auto nearest = nearest_name(pattern, paths);
    return Error{ErrorKind::NotFound,
                 fmt::format("no file of {} matches --file {}{}", model, pattern,
                             nearest ? fmt::format("; did you mean {}?", *nearest) : "")};
  }
  std::vector<HubFile> chosen;
  for (std::size_t i = 0; i < listing.files.size(); ++i) {
    if (is_chosen[i]) chosen.push_back(listing.files[i]);
  }
  return chosen;
}

}  // namespace

Result<std::vector<HubFile>> choose_files(std::string_view model, const HubListing& listing,
                                          std::span<const std::string> patterns) {
  auto chosen = MUSTER_TRY(patterns.empty() ? usual_files(model, listing)
                                            : matching_files(model, listing, patterns));
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const auto& a, const auto& b) { return a.size < b.size; });
  return chosen;
}

}  // namespace muster
