#include <utility>
#include <vector>

#include "tokenizer/tokenizer_json.h"

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

Result<PostProcessor> read_cls_and_sep(const JsonObject& object) {
  const auto cls = MUSTER_TRY(token_pair_id(object, "cls"));
  const auto sep = MUSTER_TRY(token_pair_id(object, "sep"));
  return PostProcessor{.before = {cls}, .after = {sep}};
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
  return processor;
}

Result<PostProcessor> read_step(const JsonObject& object) {
  const auto type = MUSTER_TRY(text_field(object, "type"));
  if (type == "TemplateProcessing") return read_template(object);
  if (type == "BertProcessing" || type == "RobertaProcessing") return read_cls_and_sep(object);
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
