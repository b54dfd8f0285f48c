// A text is worked through in windows, so that a limit on tokens stops early and buffers stay
// small. A window ends at an added token or at a place where cutting changes nothing; if it has
// no such place, its size doubles, which keeps the total cost of searching linear. Tokenizers
// that allow no cut get the whole text as one window.

#include "tokenizer/text_pass.h"

#include <algorithm>
#include <span>

namespace muster {

CutRules TextPass::cut_rules() const {
  const bool others_allow =
      (!parts_.normalizer || parts_.normalizer->allows_cuts()) && parts_.added_tokens.allows_cuts();
  if (!others_allow || !parts_.pre_tokenizer) {
    return {};
  }
  const auto separates = [this](CutPlace place) {
    return parts_.pre_tokenizer->cut_effect(place) == CutEffect::Separates;
  };
  CutRules rules;
  rules.before_space = separates(CutPlace::Space);
  rules.before_line_feed = separates(CutPlace::LineFeed);
  // The spaces around the character end a word wherever white space does.
  rules.before_chinese = rules.before_space && parts_.normalizer &&
                         parts_.normalizer->isolates_chinese() &&
                         parts_.pre_tokenizer->removes_space();
  return rules;
}

void TextPass::encode(std::string_view text, std::size_t part_size) {
  const CutRules rules = cut_rules();
  const std::size_t window_size = rules.before_space ? part_size : text.size();
  std::size_t window = window_size;
  std::size_t at = 0;        // what is before is done
  std::size_t searched = 0;  // no added token that is not done begins before
  bool is_first = true;      // `at` is where a segment between added tokens begins
  while (at < text.size() && !is_full()) {
    const std::size_t window_end = at + std::min(window, text.size() - at);
    AddedTokens::Search search{std::nullopt, searched};
    if (searched < window_end) {
      search = parts_.added_tokens.find_raw(text, searched, window_end, at);
      searched = search.resume;
    }
    std::size_t part_end = window_end;
    if (search.found) {
      part_end = search.found->begin;
    } else if (window_end < text.size()) {
      part_end = last_cut(text, at, window_end, rules);
      // No place to cut in the whole window: it grows, and nothing of it has been encoded yet.
      if (part_end == at) {
        window *= 2;
        continue;
      }
    }
    const bool is_last = search.found || part_end == text.size();
    if (at < part_end) {
      encode_part(text.substr(at, part_end - at), {is_first, is_last}, at == 0);
    }
    at = part_end;
    is_first = false;
    window = window_size;
    if (search.found && !is_full()) {
      ids_.push_back(search.found->id);
      at = search.found->end;
      is_first = true;
    }
  }
}

void TextPass::encode_part(std::string_view part, SegmentEdges edges, bool begins_text) {
  std::string_view text = part;
  if (parts_.normalizer) {
    scratch_.text.assign(part);
    parts_.normalizer->normalize(scratch_.text, scratch_.spare, edges);
    text = scratch_.text;
  }
  std::size_t at = 0;
  for (std::size_t from = 0; parts_.added_tokens.has_normalized() && !is_full();) {
    const auto search = parts_.added_tokens.find_normalized(text, from, at);
    if (!search.found) {
      break;
    }
    if (at < search.found->begin) {
      encode_words(text.substr(at, search.found->begin - at), begins_text && at == 0);
    }
    ids_.push_back(search.found->id);
    at = search.found->end;
    from = search.resume;
  }
  encode_words(text.substr(at), begins_text && at == 0);
}

// Whether so many bytes of words come to more ids than there is room for.
bool TextPass::has_too_many(std::size_t bytes) const {
  return token_bytes_most_ && bytes / *token_bytes_most_ > ids_end_ - ids_.size();
}

void TextPass::encode_words(std::string_view text, bool begins_text) {
  if (is_full()) {
    return;
  }
  const bool keeps_text = !parts_.pre_tokenizer || parts_.pre_tokenizer->keeps_text();
  if (keeps_text && has_too_many(text.size())) {
    is_surely_longer_ = true;
    return;
  }
  scratch_.pieces.reset(text, begins_text);
  if (parts_.pre_tokenizer && !text.empty()) {
    parts_.pre_tokenizer->split(scratch_.pieces);
  }
  for (const Piece& piece : scratch_.pieces.list()) {
    if (is_full()) {
      return;
    }
    encode_word(scratch_.pieces.at(piece));
  }
}

void TextPass::encode_word(std::string_view word) {
  if (scratch_.words.append(word, ids_)) {
    return;
  }
  if (has_too_many(word.size())) {
    is_surely_longer_ = true;
    return;
  }
  const std::size_t begin = ids_.size();
  parts_.model->tokenize(word, scratch_.model, ids_);
  scratch_.words.keep(word, std::span<const TokenId>(ids_).subspan(begin));
}

}  // namespace muster
