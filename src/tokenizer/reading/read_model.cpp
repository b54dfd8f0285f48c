// The models by name, and the questions that other parts ask about one before it is made:
// whether it can read bytes itself, and whether a text may be split at runs of marks. Both are
// shortcuts that give the same ids; every option under which they would not is listed in the
// conditions. Dropout is refused unless it is zero, as it makes ids random.

#include <utility>
#include <vector>

#include "tokenizer/reading/tokenizer_json.h"

namespace muster {
namespace {

using Made = Result<std::unique_ptr<const Model>>;

Result<TokenTable> read_vocab(const JsonObject& model) {
  const auto element = MUSTER_TRY(field(model, "vocab"));
  const auto vocab = MUSTER_TRY(as_object(element, "vocab"));
  // Saves growing the keys again and again; a wrong guess only costs an allocation.
  constexpr std::size_t kTokenSizeGuess = 8;
  TokenTable tokens;
  tokens.reserve(vocab.size(), vocab.size() * kTokenSizeGuess);
  for (const auto [token, id] : vocab) {
    const auto token_id = MUSTER_TRY(as_token_id(id, token));
    tokens.insert(token, token_id);
  }
  return tokens;
}

Made read_wordpiece(const JsonObject& model) {
  WordPieceOptions options;
  options.unk_token = MUSTER_TRY(text_field(model, "unk_token"));
  options.continuing_subword_prefix = MUSTER_TRY(text_field(model, "continuing_subword_prefix"));
  const auto chars_max = MUSTER_TRY(field(model, "max_input_chars_per_word"));
  if (chars_max.get(options.max_input_chars_per_word) != simdjson::SUCCESS) {
    return corrupt_json("field is not a count", "max_input_chars_per_word");
  }
  auto tokens = MUSTER_TRY(read_vocab(model));
  return make_wordpiece(std::move(tokens), options);
}

/// "left right" of older files; nullopt for a comment line.
Result<std::optional<MergeText>> read_merge_line(std::string_view line) {
  if (line.substr(0, 8) == "#version") {
    return std::optional<MergeText>();
  }
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
    return corrupt_json("a merge is not two tokens", line);
  }
  return std::optional(MergeText(line.substr(0, space), line.substr(space + 1)));
}

Result<MergeText> read_merge_pair(const JsonElement& element) {
  JsonArray pair;
  MergeText merge;
  const bool is_pair = element.get(pair) == simdjson::SUCCESS && pair.size() == 2 &&
                       pair.at(0).get(merge.first) == simdjson::SUCCESS &&
                       pair.at(1).get(merge.second) == simdjson::SUCCESS;
  if (!is_pair) {
    return corrupt_json("a merge is not two tokens", "merges");
  }
  return merge;
}

Result<std::vector<MergeText>> read_merges(const JsonObject& model) {
  std::vector<MergeText> merges;
  const auto elements = MUSTER_TRY(array_field(model, "merges"));
  merges.reserve(elements.size());
  for (const JsonElement element : elements) {
    std::string_view line;
    if (element.get(line) != simdjson::SUCCESS) {
      const auto merge = MUSTER_TRY(read_merge_pair(element));
      merges.push_back(merge);
    } else if (const auto merge = MUSTER_TRY(read_merge_line(line))) {
      merges.push_back(*merge);
    }
  }
  return merges;
}

Made read_bpe(const JsonObject& model, ByteMapping mapping) {
  if (const auto dropout = MUSTER_TRY(optional_field(model, "dropout"))) {
    double value = 1;
    if (dropout->get(value) != simdjson::SUCCESS || value != 0) {
      return unsupported_part("BPE option", "dropout");
    }
  }
  BpeOptions options;
  options.unk_token = MUSTER_TRY(optional_text(model, "unk_token"));
  options.continuing_subword_prefix =
      MUSTER_TRY(text_field_or(model, "continuing_subword_prefix", ""));
  options.end_of_word_suffix = MUSTER_TRY(text_field_or(model, "end_of_word_suffix", ""));
  options.fuse_unk = MUSTER_TRY(bool_field_or(model, "fuse_unk", false));
  options.ignore_merges = MUSTER_TRY(bool_field_or(model, "ignore_merges", false));
  options.byte_fallback = MUSTER_TRY(bool_field_or(model, "byte_fallback", false));
  options.reads_bytes = mapping == ByteMapping::LeftToModel;
  auto tokens = MUSTER_TRY(read_vocab(model));
  const auto merges = MUSTER_TRY(read_merges(model));
  return make_bpe(std::move(tokens), merges, options);
}

/// Old files state no type; the library then takes the first whose fields are all there.
Result<std::string> model_type(const JsonObject& model) {
  if (auto type = MUSTER_TRY(optional_text(model, "type"))) {
    return std::move(*type);
  }
  const auto merges = MUSTER_TRY(optional_field(model, "merges"));
  const auto chars_max = MUSTER_TRY(optional_field(model, "max_input_chars_per_word"));
  const auto unk_id = MUSTER_TRY(optional_field(model, "unk_id"));
  return std::string(merges      ? "BPE"
                     : chars_max ? "WordPiece"
                     : unk_id    ? "Unigram"
                                 : "without a type");
}

}  // namespace

Result<bool> can_read_bytes(const JsonObject& model) {
  const auto prefix = MUSTER_TRY(text_field_or(model, "continuing_subword_prefix", ""));
  const auto suffix = MUSTER_TRY(text_field_or(model, "end_of_word_suffix", ""));
  const auto falls_back = MUSTER_TRY(bool_field_or(model, "byte_fallback", false));
  const auto type = MUSTER_TRY(model_type(model));
  return type == "BPE" && prefix.empty() && suffix.empty() && !falls_back;
}

Result<bool> allows_words_of_mark_runs(const JsonObject& object, const Model& model) {
  const auto prefix = MUSTER_TRY(text_field_or(object, "continuing_subword_prefix", ""));
  const auto suffix = MUSTER_TRY(text_field_or(object, "end_of_word_suffix", ""));
  const auto falls_back = MUSTER_TRY(bool_field_or(object, "byte_fallback", false));
  const auto ignores_merges = MUSTER_TRY(bool_field_or(object, "ignore_merges", false));
  const auto type = MUSTER_TRY(model_type(object));
  return type == "BPE" && prefix.empty() && suffix.empty() && falls_back && !ignores_merges &&
         allows_mark_runs(model.vocabulary().table());
}

Result<std::unique_ptr<const Model>> read_model(const JsonObject& object, ByteMapping mapping,
                                                std::string_view document) {
  const auto type = MUSTER_TRY(model_type(object));
  if (type == "BPE") return read_bpe(object, mapping);
  if (type == "WordPiece") return read_wordpiece(object);
  if (type == "Unigram") return read_unigram(object, document);
  return unsupported_part("model", type);
}

}  // namespace muster
