// Which tokens end a reply no key states in full: there is one for EOS, and newer files have one
// for the end of a turn. llama.cpp knows the others by their text, and so do we, from the same
// list.

#include "modelfile/gguf_ends.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace muster {
namespace {

/// Texts of tokens that end a reply whatever the keys say. The last dozen mark padding,
/// repositories and files where a model fills in code: a reply that comes to one of them is over,
/// too. Source: llama-vocab.cpp of llama.cpp (llama-cpp-python 0.3.36), `special_eog_ids` with
/// `special_fim_pad_id`, `special_fim_rep_id` and `special_fim_sep_id`.
constexpr auto kEndTexts = std::to_array<std::string_view>({
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
    "[e~[",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
});

bool is_end_text(std::string_view text) {
  return std::find(kEndTexts.begin(), kEndTexts.end(), text) != kEndTexts.end();
}

/// Two models whose vocabularies hold an end text that ends nothing: `<|end|>` beside the marks of
/// gpt-oss or Solar, `</s>` beside those of Gemma 4.
/// Source: as above, "workaround for o200k_harmony" and "gemma4 and plamo".
void keep_inner_marks(const std::set<std::string_view>& texts, std::set<std::string_view>& ends) {
  const auto has = [&](std::string_view text) { return texts.count(text) != 0; };
  const bool has_call = has("<|call|>") || has("<|calls|>");
  if (has_call && (has("<|return|>") || has("<|flush|>"))) ends.erase("<|end|>");
  if (has("<|tool_response>")) ends.erase("</s>");
}

}  // namespace

void find_reply_ends(const std::vector<std::uint32_t>& stated, GgufTokens& tokens) {
  std::set<std::string_view> ends;
  for (const auto text : tokens.tokens) {
    if (is_end_text(text)) ends.insert(text);
  }
  const auto texts = ends;
  keep_inner_marks(texts, ends);
  std::set<std::uint32_t> ids;
  for (std::uint32_t id = 0; id < tokens.tokens.size(); ++id) {
    if (ends.count(tokens.tokens[id]) == 0) continue;
    ids.insert(id);
    if (!tokens.types.empty()) tokens.types[id] = GgufTokenType::Control;
  }
  ids.insert(stated.begin(), stated.end());
  tokens.stop_ids.assign(ids.begin(), ids.end());
}

}  // namespace muster
