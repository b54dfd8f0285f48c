// All post-processors come down to ids before, between and behind the texts. A template is more
// general than that: it may repeat a text or order a pair as it likes. A single text must appear
// exactly once, else the file is refused; an unusual pair only leaves the tokenizer without
// pairs, since embedding does not need them.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/reading/tokenizer_json.h"

namespace muster {
namespace {

/// ["[SEP]", 102] of `name`: the id.
Result<TokenId> token_pair_id(const JsonObject& object, std::string_view name) {
  const auto pair = MUSTER_TRY(array_field(object, name));
  JsonElement id;
  if (pair.size() != 2 || pair.at(1).get(id) != simdjson::SUCCESS) {
    return corrupt_json("field is not a token and its id", name);
  }
  return as_token_id(id, name);
}

// Source: BertProcessing and RobertaProcessing of huggingface/tokenizers 0.23: the one numbers the
// segments of a pair, the other puts all into segment 0 and doubles what is between.
Result<PostProcessor> read_cls_and_sep(const JsonObject& object, bool is_bert) {
  const auto cls = MUSTER_TRY(token_pair_id(object, "cls"));
  const auto sep = MUSTER_TRY(token_pair_id(object, "sep"));
  PairTemplate pair{.before = {cls}, .between = {sep}, .after = {sep}};
  if (is_bert) {
    pair.between_first_count = 1;
  } else {
    pair.between.push_back(sep);
    pair.has_segments = false;
  }
  return PostProcessor{.before = {cls}, .after = {sep}, .pair = std::move(pair)};
}

Result<std::vector<TokenId>> special_token_ids(const JsonObject& special_tokens,
                                               const JsonElement& piece) {
  const auto token = MUSTER_TRY(as_object(piece, "SpecialToken"));
  const auto name = MUSTER_TRY(text_field(token, "id"));
  const auto entry = MUSTER_TRY(field(special_tokens, name));
  const auto described = MUSTER_TRY(as_object(entry, name));
  std::vector<TokenId> ids;
  const auto elements = MUSTER_TRY(array_field(described, "ids"));
  for (const JsonElement element : elements) {
    const auto id = MUSTER_TRY(as_token_id(element, name));
    ids.push_back(id);
  }
  return ids;
}

// One place of a template: a text or special tokens, and the segment they are of.
struct TemplatePiece {
  std::optional<std::string> sequence;  // "A" or "B"
  std::vector<TokenId> ids;
  std::uint64_t segment = 0;
};

Result<TemplatePiece> read_piece(const JsonObject& special_tokens, const JsonElement& element) {
  const auto object = MUSTER_TRY(as_object(element, "pair"));
  TemplatePiece piece;
  const auto special = MUSTER_TRY(optional_field(object, "SpecialToken"));
  const auto inner_element = special ? Result<JsonElement>(*special) : field(object, "Sequence");
  if (!inner_element) return inner_element.error();
  const auto inner = MUSTER_TRY(as_object(*inner_element, "pair"));
  if (special) {
    piece.ids = MUSTER_TRY(special_token_ids(special_tokens, *special));
  } else {
    piece.sequence = MUSTER_TRY(text_field(inner, "id"));
  }
  const auto segment = MUSTER_TRY(optional_field(inner, "type_id"));
  if (segment && segment->get(piece.segment) != simdjson::SUCCESS) {
    return corrupt_json("field is not a number", "type_id");
  }
  return piece;
}

// Nullopt for a pair that is not A, B with segments that go from 0 to 1 at most once.
std::optional<PairTemplate> pair_of(const std::vector<TemplatePiece>& pieces) {
  PairTemplate pair;
  std::vector<TokenId>* side = &pair.before;
  std::uint64_t segment = 0;
  for (const auto& piece : pieces) {
    if (piece.segment < segment || piece.segment > 1) return std::nullopt;
    // Only between the texts, or where the second one begins, may the segment change.
    const bool may_change = side == &pair.between;
    if (piece.segment != segment && !may_change) return std::nullopt;
    segment = piece.segment;
    if (!piece.sequence) {
      side->insert(side->end(), piece.ids.begin(), piece.ids.end());
      if (may_change && segment == 0) pair.between_first_count = side->size();
    } else if (*piece.sequence == "A" && side == &pair.before) {
      side = &pair.between;
    } else if (*piece.sequence == "B" && side == &pair.between) {
      side = &pair.after;
    } else {
      return std::nullopt;
    }
  }
  if (side != &pair.after) return std::nullopt;
  pair.has_segments = segment == 1;
  return pair;
}

Result<std::optional<PairTemplate>> read_pair(const JsonObject& object,
                                              const JsonObject& special_tokens) {
  const auto stated = MUSTER_TRY(optional_field(object, "pair"));
  if (!stated) return std::optional<PairTemplate>();
  const auto elements = MUSTER_TRY(array_field(object, "pair"));
  std::vector<TemplatePiece> pieces;
  for (const JsonElement element : elements) {
    pieces.push_back(MUSTER_TRY(read_piece(special_tokens, element)));
  }
  return pair_of(pieces);
}

Result<PostProcessor> read_template(const JsonObject& object) {
  const auto tokens_element = MUSTER_TRY(field(object, "special_tokens"));
  const auto special_tokens = MUSTER_TRY(as_object(tokens_element, "special_tokens"));
  PostProcessor processor;
  int sequence_count = 0;
  const auto elements = MUSTER_TRY(array_field(object, "single"));
  for (const JsonElement element : elements) {
    const auto piece = MUSTER_TRY(as_object(element, "single"));
    if (const auto special = MUSTER_TRY(optional_field(piece, "SpecialToken"))) {
      const auto ids = MUSTER_TRY(special_token_ids(special_tokens, *special));
      auto& side = sequence_count == 0 ? processor.before : processor.after;
      side.insert(side.end(), ids.begin(), ids.end());
      continue;
    }
    const auto sequence_element = MUSTER_TRY(field(piece, "Sequence"));
    const auto sequence = MUSTER_TRY(as_object(sequence_element, "Sequence"));
    const auto name = MUSTER_TRY(text_field(sequence, "id"));
    if (name != "A") {
      return unsupported_part("template", "single with a second sequence");
    }
    ++sequence_count;
  }
  if (sequence_count != 1) {
    return unsupported_part("template", "single without its sequence, or with it twice");
  }
  processor.pair = MUSTER_TRY(read_pair(object, special_tokens));
  return processor;
}

Result<PostProcessor> read_step(const JsonObject& object) {
  const auto type = MUSTER_TRY(text_field(object, "type"));
  if (type == "TemplateProcessing") return read_template(object);
  if (type == "BertProcessing") return read_cls_and_sep(object, /*is_bert=*/true);
  if (type == "RobertaProcessing") return read_cls_and_sep(object, /*is_bert=*/false);
  if (type == "ByteLevel") return PostProcessor{};  // it only trims offsets
  return unsupported_part("post-processor", type);
}

}  // namespace

Result<PostProcessor> read_post_processor(const JsonObject& object) {
  const auto objects = MUSTER_TRY(steps_of(object, "processors"));
  PostProcessor all;
  for (const JsonObject& step_object : objects) {
    const auto step = MUSTER_TRY(read_step(step_object));
    all.wrap(step);
  }
  return all;
}

}  // namespace muster
