// A folder of an embedding model or reranker, as its configs describe it. Which files exist
// varies with the age of the tool that wrote them, so a missing one means its default; a broken
// one is an error. A path inside a config may not leave the folder. The hash covers every file
// that changes a vector, so it can stand for the model in a cache key.

#include "modelfile/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "modelfile/hub_cache.h"
#include "modelfile/model_config.h"
#include "modelfile/rerank_config.h"
#include "modelfile/weight_files.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// Configs are a few kB; the limit only keeps a hostile file from filling the memory.
constexpr std::uint64_t kConfigBytesMax = 16ULL << 20;

// Names of the length file by age of sentence-transformers; the first that is there counts.
// Source: sentence-transformers 6.0.1, base/modules/transformer.py, `load_config`.
constexpr std::array<std::string_view, 5> kLengthFiles{
    "sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json",
    "sentence_camembert_config.json", "sentence_xlm-roberta_config.json"};

// The text of a file that may be missing.
Result<std::optional<std::string>> read_optional(const fs::path& path) {
  auto text = read_regular_file(path, kConfigBytesMax);
  if (text) return std::optional<std::string>(*std::move(text));
  if (text.error().kind == ErrorKind::NotFound) return std::optional<std::string>();
  return text.error();
}

// Puts the folder before a parser's "config.json: ..." so that the message says which model it is.
template <typename T>
Result<T> within(const fs::path& folder, Result<T> parsed) {
  if (parsed) return parsed;
  return Error{parsed.error().kind, (folder / parsed.error().message).string()};
}

// A path inside the folder that a config names: a plain relative name, never a way out.
Status check_inner_path(const fs::path& folder, const std::string& inner) {
  const fs::path path(inner);
  const bool leaves =
      path.is_absolute() ||
      std::any_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; });
  if (!leaves && inner.find('\0') == std::string::npos) return Done{};
  return Error{ErrorKind::InvalidArgument, fmt::format("{}: a module's path leaves the folder: {}",
                                                       (folder / "modules.json").string(), inner)};
}

Result<std::optional<SentenceModules>> read_modules(const fs::path& folder) {
  const auto text = MUSTER_TRY(read_optional(folder / "modules.json"));
  if (!text) return std::optional<SentenceModules>();
  auto modules = MUSTER_TRY(within(folder, parse_sentence_modules(*text)));
  MUSTER_TRY(check_inner_path(folder, modules.pooling_folder));
  return std::optional<SentenceModules>(std::move(modules));
}

Result<LengthConfig> read_length(const fs::path& folder) {
  for (const auto name : kLengthFiles) {
    if (const auto text = MUSTER_TRY(read_optional(folder / name))) {
      return within(folder, parse_length_config(name, *text));
    }
  }
  return LengthConfig{};
}

Result<std::uint32_t> text_length(const fs::path& folder, const LengthConfig& length,
                                  std::uint32_t positions) {
  auto length_max = length.length_max;
  if (!length_max) {
    if (const auto text = MUSTER_TRY(read_optional(folder / "tokenizer_config.json"))) {
      length_max = MUSTER_TRY(within(folder, parse_tokenizer_length(*text)));
    }
  }
  return std::min(length_max.value_or(positions), positions);
}

// Of a cross-encoder modules.json says nothing more.
Result<std::optional<SentenceModules>> read_pooling_modules(const fs::path& folder,
                                                            bool is_cross_encoder) {
  if (is_cross_encoder) return std::optional<SentenceModules>();
  return read_modules(folder);
}

Result<SentenceSpec> read_sentence(const fs::path& folder, const EncoderSpec& encoder,
                                   bool is_cross_encoder) {
  SentenceSpec sentence;
  if (const auto modules = MUSTER_TRY(read_pooling_modules(folder, is_cross_encoder))) {
    const auto name = (fs::path(modules->pooling_folder) / "config.json").string();
    const auto text = MUSTER_TRY(read_regular_file(folder / name, kConfigBytesMax));
    sentence.pooling = MUSTER_TRY(within(folder, parse_pooling_config(name, text)));
    sentence.normalize = modules->normalize;
  }

  const auto length = MUSTER_TRY(read_length(folder));
  sentence.lowercase = length.lowercase;
  sentence.length_max = MUSTER_TRY(text_length(folder, length, encoder.length_max()));

  if (const auto text = MUSTER_TRY(read_optional(folder / "config_sentence_transformers.json"))) {
    auto prompts = MUSTER_TRY(within(folder, parse_prompt_config(*text)));
    sentence.prompts = std::move(prompts.prompts);
    sentence.default_prompt = std::move(prompts.default_prompt);
  }
  return sentence;
}

// Without its length, which is that of a single text.
Result<std::optional<RerankSpec>> read_rerank(const fs::path& folder, const std::string& config,
                                              EncoderFamily family) {
  auto rerank = MUSTER_TRY(within(folder, parse_rerank_config(config)));
  if (!rerank) return rerank;
  if (const auto text = MUSTER_TRY(read_optional(folder / "modules.json"))) {
    const bool is_one = MUSTER_TRY(within(folder, is_cross_encoder(*text)));
    if (!is_one) return std::optional<RerankSpec>();
  }
  if (const auto text = MUSTER_TRY(read_optional(folder / "config_sentence_transformers.json"))) {
    const auto stated = MUSTER_TRY(within(folder, parse_score_activation(*text)));
    rerank->activation = stated.value_or(rerank->activation);
  }
  const auto text = MUSTER_TRY(read_optional(folder / "tokenizer_config.json"));
  rerank->has_segments = MUSTER_TRY(within(folder, parse_segment_use(text.value_or("{}"), family)));
  return rerank;
}

// Adds name, size and content, so that no two sets of files give the same stream of bytes.
Status add_file(Hash128& hash, const fs::path& folder, const fs::path& name) {
  const auto file = MappedFile::open(folder / name);
  if (!file) {
    return file.error().kind == ErrorKind::NotFound ? Status(Done{}) : Status(file.error());
  }
  hash.update(fmt::format("{}\n{}\n", name.generic_string(), file->bytes().size()));
  hash.update(file->bytes());
  return Done{};
}

}  // namespace

Result<ModelFolder> read_model_folder(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return Error{ErrorKind::NotFound, fmt::format("{}: no such model folder", folder.string())};
  }
  ModelFolder model;
  model.path = folder;
  model.name = model_name_of(folder);
  const auto config = MUSTER_TRY(read_regular_file(folder / "config.json", kConfigBytesMax));
  model.encoder = MUSTER_TRY(within(folder, parse_encoder_config(config)));
  model.rerank = MUSTER_TRY(read_rerank(folder, config, model.encoder.family));
  model.sentence = MUSTER_TRY(read_sentence(folder, model.encoder, model.rerank.has_value()));
  if (model.rerank) model.rerank->length_max = model.sentence.length_max;
  return model;
}

Result<std::uint32_t> read_text_length(const fs::path& folder, std::uint32_t positions) {
  return text_length(folder, MUSTER_TRY(read_length(folder)), positions);
}

Result<std::string> model_hash(const fs::path& folder) {
  Hash128 hash;
  for (const auto* name :
       {"config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
        "modules.json", "config_sentence_transformers.json"}) {
    MUSTER_TRY(add_file(hash, folder, name));
  }
  for (const auto name : kLengthFiles) MUSTER_TRY(add_file(hash, folder, name));
  if (const auto modules = MUSTER_TRY(read_modules(folder))) {
    MUSTER_TRY(add_file(hash, folder, fs::path(modules->pooling_folder) / "config.json"));
  }
  for (const auto& name : MUSTER_TRY(weight_files(folder)))
    MUSTER_TRY(add_file(hash, folder, name));
  return hash.hex();
}

}  // namespace muster
