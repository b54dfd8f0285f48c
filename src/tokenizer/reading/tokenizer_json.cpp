// The order in which the parts are read matters. The pre-tokenizer and the model agree on who
// maps bytes before either is made; the added tokens come last, because their ids count on from
// the model's and their texts pass through the normaliser. What is not implemented is refused by
// its name, so that a file either gives the library's ids or none.

#include "tokenizer/reading/tokenizer_json.h"

#include <utility>
#include <vector>

#include "tokenizer/models/sentencepiece_text.h"

namespace muster {
namespace {

Result<std::optional<JsonObject>> optional_part(const JsonObject& root, std::string_view name) {
  const auto element = MUSTER_TRY(optional_field(root, name));
  if (!element) {
    return std::optional<JsonObject>();
  }
  const auto part = MUSTER_TRY(as_object(*element, name));
  return std::optional(part);
}

Result<std::vector<AddedToken>> read_added_tokens(const JsonObject& root) {
  std::vector<AddedToken> tokens;
  const auto part = MUSTER_TRY(optional_field(root, "added_tokens"));
  if (!part) {
    return tokens;
  }
  const auto elements = MUSTER_TRY(array_field(root, "added_tokens"));
  for (const JsonElement element : elements) {
    const auto object = MUSTER_TRY(as_object(element, "added_tokens"));
    AddedToken token;
    token.content = MUSTER_TRY(text_field(object, "content"));
    token.single_word = MUSTER_TRY(bool_field(object, "single_word"));
    token.lstrip = MUSTER_TRY(bool_field(object, "lstrip"));
    token.rstrip = MUSTER_TRY(bool_field(object, "rstrip"));
    token.normalized = MUSTER_TRY(bool_field(object, "normalized"));
    token.special = MUSTER_TRY(bool_field(object, "special"));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

/// The pre-tokenizer and the model, which agree on who turns bytes into the byte alphabet.
Status read_words(const JsonObject& root, std::string_view document, TokenizerParts& parts) {
  const auto model_element = MUSTER_TRY(field(root, "model"));
  const auto model = MUSTER_TRY(as_object(model_element, "model"));
  auto mapping = ByteMapping::Written;
  if (const auto pre_tokenizer = MUSTER_TRY(optional_part(root, "pre_tokenizer"))) {
    const auto words_are_bytes = MUSTER_TRY(ends_in_bytes(*pre_tokenizer));
    const auto reads_bytes = MUSTER_TRY(can_read_bytes(model));
    mapping = words_are_bytes && reads_bytes ? ByteMapping::LeftToModel : ByteMapping::Written;
    parts.pre_tokenizer = MUSTER_TRY(read_pre_tokenizer(*pre_tokenizer, mapping));
  }
  parts.model = MUSTER_TRY(read_model(model, mapping, document));
  // Llama 2's files split nothing: the whole text is one word.
  if (!parts.pre_tokenizer && MUSTER_TRY(allows_words_of_mark_runs(model, *parts.model))) {
    parts.pre_tokenizer =
        make_mark_run_pre_tokenizer(std::string(kSpaceMark), /*spaces_are_marks=*/false);
  }
  return Done{};
}

/// The library asks the offsets of a word in the original text whether it is the first, and some
/// normalisers move them.
Status check_text_start(const TokenizerParts& parts) {
  const std::string_view mark =
      parts.pre_tokenizer ? parts.pre_tokenizer->text_start_mark() : std::string_view();
  if (mark.empty() || !parts.normalizer) {
    return Done{};
  }
  if (!parts.normalizer->keeps_start(mark)) {
    return unsupported_part("pre-tokenizer",
                            "Metaspace with prepend_scheme first, behind this normalizer");
  }
  if (parts.added_tokens.has_normalized()) {
    return unsupported_part("pre-tokenizer",
                            "Metaspace with prepend_scheme first, behind normalized added tokens");
  }
  return Done{};
}

}  // namespace

Result<Regex> compile_pattern(const JsonPattern& pattern) {
  return pattern.is_regex ? Regex::compile(pattern.text) : Regex::literal(pattern.text);
}

Result<TokenizerParts> read_tokenizer_json(std::string_view text) {
  simdjson::dom::parser parser;
  JsonElement document;
  if (const auto code = parser.parse(text.data(), text.size()).get(document);
      code != simdjson::SUCCESS) {
    return corrupt_json("broken JSON", simdjson::error_message(code));
  }
  const auto root = MUSTER_TRY(as_object(document, "the document"));
  const auto version = MUSTER_TRY(optional_text(root, "version"));
  if (version && *version != "1.0") {
    return unsupported_part("version", *version);
  }
  TokenizerParts parts;
  if (const auto normalizer = MUSTER_TRY(optional_part(root, "normalizer"))) {
    parts.normalizer = MUSTER_TRY(read_normalizer(*normalizer));
  }
  MUSTER_TRY(read_words(root, text, parts));
  if (const auto processor = MUSTER_TRY(optional_part(root, "post_processor"))) {
    parts.post_processor = MUSTER_TRY(read_post_processor(*processor));
  }
  if (const auto decoder = MUSTER_TRY(optional_part(root, "decoder"))) {
    parts.decoder = MUSTER_TRY(read_decoder(*decoder));
  }
  const auto added = MUSTER_TRY(read_added_tokens(root));
  parts.added_tokens = MUSTER_TRY(AddedTokens::make(added, *parts.model, parts.normalizer.get()));
  MUSTER_TRY(check_text_start(parts));
  return parts;
}

}  // namespace muster
