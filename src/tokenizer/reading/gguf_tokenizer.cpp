// A GGUF file becomes the same parts as a tokenizer.json, so one encoder serves both. What the
// file leaves open follows llama.cpp: an empty token gets a name, a missing flag takes the
// default of its model, and Phi-3's special tokens take the white space behind them along.

#include "tokenizer/reading/gguf_tokenizer.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <utility>

#include "base/text.h"
#include "tokenizer/models/sentencepiece_text.h"
#include "tokenizer/reading/gguf_pre_tokenizers.h"
#include "tokenizer/reading/tokenizer_json.h"

// The parts that a tokenizer.json would describe, put together from a GGUF file's lists. A file
// says less: which special tokens there are (by type), whether BOS and EOS are added, and for BPE
// the name of a pre-tokenizer.

namespace muster {
namespace {

Error corrupt(std::string what) {
  return Error{ErrorKind::Corrupt, "tokenizer.ggml." + std::move(what)};
}

/// A token's text, or, as llama.cpp has it, a name for one that is empty.
std::string text_of(const GgufTokens& tokens, std::size_t id) {
  if (!tokens.tokens[id].empty()) return std::string(tokens.tokens[id]);
  return "[EMPTY_" + std::to_string(id) + "]";
}

Result<TokenTable> make_table(const GgufTokens& tokens) {
  std::size_t bytes = 0;
  for (const auto token : tokens.tokens) bytes += token.size();
  TokenTable table;
  table.reserve(tokens.tokens.size(), bytes);
  for (std::size_t id = 0; id < tokens.tokens.size(); ++id) {
    const auto text = text_of(tokens, id);
    // The regex engine is not asked to check what it reads.
    if (invalid_utf8_at(text)) {
      return corrupt("tokens holds a text that is not UTF-8: id " + std::to_string(id));
    }
    if (const auto other = table.find(text)) {
      return corrupt("tokens holds one text twice: ids " + std::to_string(*other) + " and " +
                     std::to_string(id));
    }
    table.insert(text, static_cast<TokenId>(id));
  }
  return table;
}

// --- special tokens ---

/// Phi-3's special tokens take white space along but for these.
/// Source: llama-vocab.cpp, "set attributes by model/tokenizer/architecture name".
bool keeps_space_behind(std::string_view text) {
  return text == "<unk>" || text == "<s>" || text == "<|endoftext|>";
}

std::vector<AddedToken> added_tokens(const GgufTokens& tokens) {
  std::vector<AddedToken> added;
  for (std::size_t id = 0; id < tokens.types.size(); ++id) {
    const auto type = tokens.types[id];
    const bool is_special = type == GgufTokenType::Control || type == GgufTokenType::Unknown;
    if (!is_special && type != GgufTokenType::UserDefined) continue;
    AddedToken token;
    token.content = text_of(tokens, id);
    token.special = is_special;
    token.rstrip = tokens.strips_behind_special && !keeps_space_behind(token.content);
    added.push_back(std::move(token));
  }
  return added;
}

Result<PostProcessor> make_post_processor(const GgufTokens& tokens, bool adds_bos) {
  PostProcessor post;
  if (tokens.adds_bos.value_or(adds_bos)) {
    if (!tokens.bos_id) return corrupt("bos_token_id is missing, and the tokenizer adds it");
    post.before.push_back(*tokens.bos_id);
  }
  if (tokens.adds_eos.value_or(false)) {
    if (!tokens.eos_id) return corrupt("eos_token_id is missing, and the tokenizer adds it");
    post.after.push_back(*tokens.eos_id);
  }
  // Nothing says how two texts make a pair.
  if (!post.before.empty() || !post.after.empty()) post.pair.reset();
  return post;
}

// --- models ---

Result<std::vector<MergeText>> split_merges(const GgufTokens& tokens) {
  std::vector<MergeText> merges;
  merges.reserve(tokens.merges.size());
  for (const auto line : tokens.merges) {
    const auto space = line.find(' ', 1);  // the left part may be a space itself
    if (line.empty() || space == std::string_view::npos || space + 1 == line.size()) {
      return corrupt("merges holds a line that is not two tokens: \"" +
                     std::string(line.substr(0, 60)) + "\"");
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

/// Error messages of the model name the file that it is usually read from.
template <typename T>
Result<T> in_gguf(Result<T> result) {
  constexpr std::string_view kOther = "tokenizer.json: ";
  if (result) return result;
  auto error = result.error();
  if (error.message.starts_with(kOther)) error.message.erase(0, kOther.size());
  return Error{error.kind, "the file's tokenizer: " + error.message};
}

Status add_byte_level(const GgufTokens& tokens, TokenizerParts& parts) {
  if (tokens.merges.empty()) return corrupt("merges is missing");
  auto pre = MUSTER_TRY(find_gguf_pre_tokenizer(tokens.pre));
  BpeOptions options;
  options.ignore_merges = pre.ignores_merges;
  options.reads_bytes = true;
  auto table = MUSTER_TRY(make_table(tokens));
  const auto merges = MUSTER_TRY(split_merges(tokens));
  parts.model = MUSTER_TRY(in_gguf(make_bpe(std::move(table), merges, options)));
  parts.pre_tokenizer = std::move(pre.steps);
  parts.decoder = make_byte_level_decoder();
  parts.post_processor = MUSTER_TRY(make_post_processor(tokens, pre.adds_bos));
  return Done{};
}

Result<std::unique_ptr<const Normalizer>> make_marking(bool adds_prefix) {
  std::vector<std::unique_ptr<const Normalizer>> steps;
  if (adds_prefix) steps.push_back(make_prepend_normalizer(std::string(kSpaceMark)));
  auto space = MUSTER_TRY(Regex::literal(" "));
  steps.push_back(make_replace_normalizer(std::move(space), std::string(kSpaceMark),
                                          /*match_size_min=*/1));
  return make_normalizer_sequence(std::move(steps));
}

Result<std::unique_ptr<const Decoder>> make_unmarking(bool drops_prefix) {
  std::vector<std::unique_ptr<const Decoder>> steps;
  auto mark = MUSTER_TRY(Regex::literal(kSpaceMark));
  steps.push_back(make_replace_decoder(std::move(mark), " "));
  steps.push_back(make_byte_fallback_decoder());
  steps.push_back(make_fuse_decoder());
  if (drops_prefix) steps.push_back(make_strip_decoder({.content = " ", .start = 1, .stop = 0}));
  return make_decoder_sequence(std::move(steps));
}

Status add_sentencepiece(const GgufTokens& tokens, TokenizerParts& parts) {
  if (tokens.scores.empty()) return corrupt("scores is missing");
  if (!std::all_of(tokens.scores.begin(), tokens.scores.end(),
                   [](float score) { return std::isfinite(score); })) {
    return corrupt("scores holds a number that is not finite");
  }
  auto table = MUSTER_TRY(make_table(tokens));
  if (allows_mark_runs(table)) {
    parts.pre_tokenizer =
        make_mark_run_pre_tokenizer(std::string(kSpaceMark), /*spaces_are_marks=*/true);
  }
  parts.model =
      MUSTER_TRY(in_gguf(make_score_bpe(std::move(table), tokens.scores, tokens.unknown_id)));
  const bool adds_prefix = tokens.adds_space_prefix.value_or(true);
  parts.normalizer = MUSTER_TRY(make_marking(adds_prefix));
  parts.decoder = MUSTER_TRY(make_unmarking(adds_prefix));
  parts.post_processor = MUSTER_TRY(make_post_processor(tokens, /*adds_bos=*/true));
  return Done{};
}

}  // namespace

Result<std::unique_ptr<const Tokenizer>> make_gguf_tokenizer(const GgufTokens& tokens) {
  TokenizerParts parts;
  if (tokens.model == "gpt2") {
    MUSTER_TRY(add_byte_level(tokens, parts));
  } else if (tokens.model == "llama") {
    MUSTER_TRY(add_sentencepiece(tokens, parts));
  } else {
    return Error{ErrorKind::Unsupported, "tokenizer.ggml.model is not known: \"" +
                                             tokens.model.substr(0, 60) +
                                             "\" (known are gpt2 and llama)"};
  }
  parts.added_tokens = MUSTER_TRY(
      in_gguf(AddedTokens::make(added_tokens(tokens), *parts.model, parts.normalizer.get())));
  return Tokenizer::of_parts(std::move(parts));
}

}  // namespace muster
