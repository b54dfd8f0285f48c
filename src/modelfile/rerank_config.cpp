// How a cross-encoder turns its head's outputs into scores. The activation may stand in three
// places, written by three generations of tools; the newest counts. Only activations of torch
// itself are computed: a class of the model's own would be code from a download.

#include "modelfile/rerank_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "modelfile/json_fields.h"

namespace muster {
namespace {

constexpr std::uint32_t kLabelsMax = 1U << 16;  // far above any published head

Result<bool> has_classification_head(const JsonFields& config) {
  const auto* names = config.find("architectures");
  if (names == nullptr) return false;
  if (!names->is_array() || !std::all_of(names->begin(), names->end(),
                                         [](const auto& name) { return name.is_string(); })) {
    return config.wrong("architectures", "a list of class names");
  }
  return !names->empty() &&
         names->front().get_ref<const std::string&>().ends_with("ForSequenceClassification");
}

Result<std::uint32_t> label_count(const JsonFields& config) {
  if (const auto* labels = config.find("id2label")) {
    if (!labels->is_object() || labels->empty() || labels->size() > kLabelsMax) {
      return config.wrong("id2label", "an object with a name for each label");
    }
    return static_cast<std::uint32_t>(labels->size());
  }
  return config.positive_or("num_labels", kLabelsMax, 2);
}

// "torch.nn.modules.activation.Sigmoid". What is not torch's is code of the model's own, which
// sentence-transformers does not run unasked either: it falls back to the default.
Result<std::optional<ScoreActivation>> activation_of(std::string_view file,
                                                     const std::string& path) {
  if (!path.starts_with("torch.")) return std::optional<ScoreActivation>();
  const auto name = std::string_view(path).substr(path.rfind('.') + 1);
  if (name == "Sigmoid") return std::optional(ScoreActivation::Sigmoid);
  if (name == "Identity") return std::optional(ScoreActivation::Identity);
  return Error{ErrorKind::Unsupported,
               fmt::format("{}: the activation of the scores is neither Sigmoid nor Identity: {}",
                           file, path.substr(0, 100))};
}

Result<std::optional<ScoreActivation>> stated_activation(const JsonFields& config) {
  constexpr std::string_view kFile = "config.json";
  if (config.has("sentence_transformers")) {
    const auto inner = MUSTER_TRY(config.inner("sentence_transformers"));
    if (inner.has("activation_fn")) {
      return activation_of(kFile, MUSTER_TRY(inner.text_or("activation_fn", "")));
    }
  }
  return activation_of(kFile,
                       MUSTER_TRY(config.text_or("sbert_ce_default_activation_function", "")));
}

}  // namespace

Result<std::optional<RerankSpec>> parse_rerank_config(std::string_view text) {
  const auto config = MUSTER_TRY(JsonFields::parse("config.json", text));
  const bool has_head = MUSTER_TRY(has_classification_head(config));
  if (!has_head) return std::optional<RerankSpec>();
  RerankSpec rerank;
  rerank.label_count = MUSTER_TRY(label_count(config));
  const auto stated = MUSTER_TRY(stated_activation(config));
  const bool is_one = rerank.label_count == 1;
  rerank.activation =
      stated.value_or(is_one ? ScoreActivation::Sigmoid : ScoreActivation::Identity);
  return std::optional(rerank);
}

Result<std::optional<ScoreActivation>> parse_score_activation(std::string_view text) {
  constexpr std::string_view kFile = "config_sentence_transformers.json";
  const auto config = MUSTER_TRY(JsonFields::parse(std::string(kFile), text));
  return activation_of(kFile, MUSTER_TRY(config.text_or("activation_fn", "")));
}

Result<bool> parse_segment_use(std::string_view text, EncoderFamily family) {
  const auto config = MUSTER_TRY(JsonFields::parse("tokenizer_config.json", text));
  if (family != EncoderFamily::Bert) return false;
  if (const auto* names = config.find("model_input_names")) {
    if (!names->is_array()) return config.wrong("model_input_names", "a list of names");
    return std::find(names->begin(), names->end(), "token_type_ids") != names->end();
  }
  const auto name = MUSTER_TRY(config.text_or("tokenizer_class", "BertTokenizer"));
  return name == "BertTokenizer" || name == "BertTokenizerFast";
}

Result<bool> is_cross_encoder(std::string_view modules) {
  const auto list = nlohmann::json::parse(modules, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return Error{ErrorKind::Corrupt, "modules.json: not a JSON array"};
  if (list.size() != 1) return false;
  const auto& only = list.front();
  if (!only.is_object() || !only.contains("type") || !only["type"].is_string() ||
      !only.contains("path") || !only["path"].is_string()) {
    return Error{ErrorKind::InvalidArgument,
                 "modules.json: a module needs the strings type and path"};
  }
  const auto& type = only["type"].get_ref<const std::string&>();
  return type.ends_with(".Transformer") && only["path"].get_ref<const std::string&>().empty();
}

}  // namespace muster
