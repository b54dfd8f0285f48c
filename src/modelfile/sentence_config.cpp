// The small files around an encoder: modules.json, pooling, length and prompts.
// Only the pipeline Transformer, Pooling, Normalize is computed, in this order; anything else is
// refused by name, because vectors of a skipped module would look right and compare wrong.

#include <fmt/format.h>

#include <array>
#include <utility>

#include "modelfile/json_fields.h"
#include "modelfile/model_config.h"
#include "modelfile/model_limits.h"

namespace muster {
namespace {

// The modes that are on, from the newer `pooling_mode` or the older flags.
Result<std::vector<std::string>> pooling_modes(const JsonFields& config) {
  std::vector<std::string> modes;
  if (const auto* chosen = config.find("pooling_mode")) {
    const auto list = chosen->is_array() ? *chosen : nlohmann::json::array({*chosen});
    for (const auto& item : list) {
      if (!item.is_string()) return config.wrong("pooling_mode", "a string or a list of strings");
      modes.push_back(item.get<std::string>());
    }
    return modes;
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kFlags{{
      {"pooling_mode_cls_token", "cls"},
      {"pooling_mode_mean_tokens", "mean"},
      {"pooling_mode_max_tokens", "max"},
      {"pooling_mode_lasttoken", "lasttoken"},
      {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
      {"pooling_mode_weightedmean_tokens", "weightedmean"},
  }};
  for (const auto& [flag, mode] : kFlags) {
    if (MUSTER_TRY(config.boolean_or(flag, false))) modes.emplace_back(mode);
  }
  // A file that states nothing means the mean. Source: sentence-transformers 6.0.1, pooling.py.
  if (modes.empty() && !config.has("pooling_mode_mean_tokens")) modes.emplace_back("mean");
  return modes;
}

}  // namespace

// A small state machine over the order of the modules: `stage` only grows.
Result<SentenceModules> parse_sentence_modules(std::string_view text) {
  const auto list = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) {
    return Error{ErrorKind::Corrupt, "modules.json: not a JSON array"};
  }
  SentenceModules modules;
  std::size_t stage = 0;  // 0: nothing, 1: the encoder, 2: pooling, 3: normalisation
  for (const auto& entry : list) {
    if (!entry.is_object() || !entry.contains("type") || !entry["type"].is_string() ||
        !entry.contains("path") || !entry["path"].is_string()) {
      return Error{ErrorKind::InvalidArgument,
                   "modules.json: a module needs the strings type and path"};
    }
    const auto type = entry["type"].get<std::string>();
    const auto path = entry["path"].get<std::string>();
    const auto name = type.substr(type.rfind('.') + 1);
    if (name == "Transformer" && stage == 0 && path.empty()) {
      stage = 1;
    } else if (name == "Pooling" && stage == 1) {
      stage = 2;
      modules.pooling_folder = path;
    } else if (name == "Normalize" && (stage == 1 || stage == 2)) {
      stage = 3;
      modules.normalize = true;
    } else {
      return Error{ErrorKind::Unsupported,
                   fmt::format("modules.json: only Transformer (in the folder itself), Pooling and "
                               "Normalize in this order are computed: {} in '{}'",
                               type, path)};
    }
  }
  if (stage < 2) {
    return Error{ErrorKind::Unsupported, "modules.json: no Pooling after a Transformer"};
  }
  return modules;
}

Result<Pooling> parse_pooling_config(std::string_view file, std::string_view text) {
  const auto config = MUSTER_TRY(JsonFields::parse(std::string(file), text));
  const auto refuse = [&](std::string_view what) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}: pooling is not one of cls, mean, max and lasttoken: {}", file,
                             what.substr(0, 60))};
  };
  if (!MUSTER_TRY(config.boolean_or("include_prompt", true))) {
    return refuse("include_prompt is false");
  }
  const auto modes = MUSTER_TRY(pooling_modes(config));
  if (modes.size() != 1) return refuse(fmt::format("{} modes at once", modes.size()));
  if (modes[0] == "cls") return Pooling::Cls;
  if (modes[0] == "mean") return Pooling::Mean;
  if (modes[0] == "max") return Pooling::Max;
  if (modes[0] == "lasttoken") return Pooling::Last;
  return refuse(modes[0]);
}

Result<LengthConfig> parse_length_config(std::string_view file, std::string_view text) {
  const auto config = MUSTER_TRY(JsonFields::parse(std::string(file), text));
  LengthConfig length;
  if (config.has("max_seq_length")) {
    length.length_max = MUSTER_TRY(config.positive("max_seq_length", kRowsMax));
  }
  length.lowercase = MUSTER_TRY(config.boolean_or("do_lower_case", false));
  return length;
}

Result<std::optional<std::uint32_t>> parse_tokenizer_length(std::string_view text) {
  const auto config = MUSTER_TRY(JsonFields::parse("tokenizer_config.json", text));
  const auto* value = config.find("model_max_length");
  // transformers writes int(1e30) for "no limit"; JSON readers see it as a float.
  if (value == nullptr || !value->is_number_unsigned()) return std::optional<std::uint32_t>();
  const auto length = value->get<std::uint64_t>();
  if (length == 0 || length > kRowsMax) return std::optional<std::uint32_t>();
  return std::optional<std::uint32_t>(static_cast<std::uint32_t>(length));
}

Result<PromptConfig> parse_prompt_config(std::string_view text) {
  const auto config = MUSTER_TRY(JsonFields::parse("config_sentence_transformers.json", text));
  PromptConfig parsed;
  if (const auto* prompts = config.find("prompts")) {
    if (!prompts->is_object()) return config.wrong("prompts", "an object of strings");
    for (const auto& [name, prompt] : prompts->items()) {
      if (!prompt.is_string()) return config.wrong("prompts", "an object of strings");
      parsed.prompts.push_back({name, prompt.get<std::string>()});
    }
  }
  const auto chosen = MUSTER_TRY(config.text_or("default_prompt_name", ""));
  if (chosen.empty()) return parsed;
  for (const auto& prompt : parsed.prompts) {
    if (prompt.name == chosen) {
      parsed.default_prompt = chosen;
      return parsed;
    }
  }
  return config.wrong("default_prompt_name", "the name of one of the prompts");
}

}  // namespace muster
