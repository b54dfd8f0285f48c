// The normalisers by their names in the file. The finished chain is asked how much it can
// lengthen a text, and is refused beyond a bound: a few steps in a small file could otherwise
// turn a short request into gigabytes. A regular expression may match nothing, so its shortest
// match counts as zero bytes.

#include <utility>
#include <vector>

#include "tokenizer/reading/tokenizer_json.h"

namespace muster {
namespace {

// NFKC, a prefix and some replacements come to less than 200; more is made to fill the memory.
constexpr double kGrowthMax = 1000;

using Made = Result<std::unique_ptr<const Normalizer>>;

Made read_bert(const JsonObject& object) {
  BertNormalizerOptions options;
  options.clean_text = MUSTER_TRY(bool_field(object, "clean_text"));
  options.handle_chinese_chars = MUSTER_TRY(bool_field(object, "handle_chinese_chars"));
  options.lowercase = MUSTER_TRY(bool_field(object, "lowercase"));
  options.strip_accents = MUSTER_TRY(bool_field_or(object, "strip_accents", options.lowercase));
  return make_bert_normalizer(options);
}

Made read_replace(const JsonObject& object) {
  const auto pattern = MUSTER_TRY(pattern_field(object));
  auto content = MUSTER_TRY(text_field(object, "content"));
  auto regex = MUSTER_TRY(compile_pattern(pattern));
  const std::size_t match_size_min = pattern.is_regex ? 0 : pattern.text.size();
  return make_replace_normalizer(std::move(regex), std::move(content), match_size_min);
}

Made read_precompiled(const JsonObject& object) {
  const auto text = MUSTER_TRY(text_field(object, "precompiled_charsmap"));
  const auto bytes = MUSTER_TRY(decode_base64(text));
  auto rules = MUSTER_TRY(Charsmap::parse(bytes));
  return make_precompiled_normalizer(std::move(rules));
}

Made read_step(const JsonObject& object) {
  const auto type = MUSTER_TRY(text_field(object, "type"));
  if (type == "BertNormalizer") return read_bert(object);
  if (type == "Replace") return read_replace(object);
  if (type == "Precompiled") return read_precompiled(object);
  if (type == "Nmt") return make_nmt_normalizer();
  if (type == "Lowercase") return make_lowercase_normalizer();
  if (type == "StripAccents") return make_strip_accents_normalizer();
  if (type == "NFC") return make_unicode_normalizer(NormalizationForm::Nfc);
  if (type == "NFD") return make_unicode_normalizer(NormalizationForm::Nfd);
  if (type == "NFKC") return make_unicode_normalizer(NormalizationForm::Nfkc);
  if (type == "NFKD") return make_unicode_normalizer(NormalizationForm::Nfkd);
  if (type == "ByteLevel") return make_byte_level_normalizer();
  if (type == "Prepend") {
    auto prefix = MUSTER_TRY(text_field(object, "prepend"));
    return make_prepend_normalizer(std::move(prefix));
  }
  if (type == "Strip") {
    StripOptions options;
    options.left = MUSTER_TRY(bool_field(object, "strip_left"));
    options.right = MUSTER_TRY(bool_field(object, "strip_right"));
    return make_strip_normalizer(options);
  }
  return unsupported_part("normalizer", type);
}

}  // namespace

Result<std::unique_ptr<const Normalizer>> read_normalizer(const JsonObject& object) {
  const auto objects = MUSTER_TRY(steps_of(object, "normalizers"));
  std::vector<std::unique_ptr<const Normalizer>> steps;
  for (const JsonObject& step_object : objects) {
    auto step = MUSTER_TRY(read_step(step_object));
    steps.push_back(std::move(step));
  }
  auto normalizer =
      steps.size() == 1 ? std::move(steps.front()) : make_normalizer_sequence(std::move(steps));
  if (normalizer->growth_max() > kGrowthMax) {
    return unsupported_part("normalizer", "Sequence that can lengthen a text more than 1000 times");
  }
  return normalizer;
}

}  // namespace muster
