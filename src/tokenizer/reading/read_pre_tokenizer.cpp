// The splitters by their names in the file. A known regular expression is swapped for its
// hand-written form, but only with behaviours under which both give the same pieces. Where the
// model reads bytes itself, the byte-level step is told not to write the byte alphabet.

#include <optional>
#include <utility>
#include <vector>

#include "tokenizer/reading/tokenizer_json.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

using Made = Result<std::unique_ptr<const PreTokenizer>>;

Result<DelimiterBehavior> behavior_of(std::string_view name) {
  if (name == "Removed") return DelimiterBehavior::Removed;
  if (name == "Isolated") return DelimiterBehavior::Isolated;
  if (name == "MergedWithPrevious") return DelimiterBehavior::MergedWithPrevious;
  if (name == "MergedWithNext") return DelimiterBehavior::MergedWithNext;
  if (name == "Contiguous") return DelimiterBehavior::Contiguous;
  return corrupt_json("unknown behavior", name);
}

Made read_split(const JsonObject& object) {
  const auto pattern = MUSTER_TRY(pattern_field(object));
  SplitOptions options;
  const auto behavior = MUSTER_TRY(text_field(object, "behavior"));
  options.behavior = MUSTER_TRY(behavior_of(behavior));
  options.invert = MUSTER_TRY(bool_field(object, "invert"));
  // The known patterns leave nothing between matches, so these two come to the same pieces.
  const bool keeps_matches = options.behavior == DelimiterBehavior::Isolated ||
                             (options.behavior == DelimiterBehavior::Removed && options.invert);
  if (pattern.is_regex && keeps_matches) {
    if (const auto known = known_pattern(pattern.text)) {
      return make_known_pre_tokenizer(*known);
    }
  }
  auto regex = MUSTER_TRY(compile_pattern(pattern));
  return make_split_pre_tokenizer(std::move(regex), options);
}

Made read_byte_level(const JsonObject& object, bool maps_bytes) {
  ByteLevelOptions options;
  options.add_prefix_space = MUSTER_TRY(bool_field(object, "add_prefix_space"));
  options.use_regex = MUSTER_TRY(bool_field_or(object, "use_regex", true));
  options.maps_bytes = maps_bytes;
  return make_byte_level_pre_tokenizer(options);
}

Result<MetaspacePrepend> prepend_of(std::string_view name) {
  if (name == "always") return MetaspacePrepend::Always;
  if (name == "never") return MetaspacePrepend::Never;
  if (name == "first") return MetaspacePrepend::First;
  return corrupt_json("unknown prepend_scheme", name);
}

Made read_step(const JsonObject& object, bool maps_bytes) {
  const auto type = MUSTER_TRY(text_field(object, "type"));
  if (type == "ByteLevel") return read_byte_level(object, maps_bytes);
  if (type == "BertPreTokenizer") return make_bert_pre_tokenizer();
  if (type == "Whitespace") return make_whitespace_pre_tokenizer();
  if (type == "WhitespaceSplit") return make_whitespace_split_pre_tokenizer();
  if (type == "Split") return read_split(object);
  if (type == "Metaspace") {
    auto options = MUSTER_TRY(read_metaspace(object));
    return make_metaspace_pre_tokenizer(std::move(options));
  }
  if (type == "Digits") {
    const auto individual_digits = MUSTER_TRY(bool_field(object, "individual_digits"));
    return make_digits_pre_tokenizer(individual_digits);
  }
  if (type == "Punctuation") {
    const auto name = MUSTER_TRY(text_field_or(object, "behavior", "Isolated"));
    const auto behavior = MUSTER_TRY(behavior_of(name));
    return make_punctuation_pre_tokenizer(behavior);
  }
  return unsupported_part("pre-tokenizer", type);
}

}  // namespace

Result<MetaspaceOptions> read_metaspace(const JsonObject& object) {
  MetaspaceOptions options;
  options.replacement = MUSTER_TRY(text_field(object, "replacement"));
  const bool is_character = !options.replacement.empty() &&
                            utf8_char_at(options.replacement, 0).size == options.replacement.size();
  if (!is_character) {
    return corrupt_json("replacement is not one character", options.replacement);
  }
  const auto scheme = MUSTER_TRY(text_field_or(object, "prepend_scheme", "always"));
  options.prepend = MUSTER_TRY(prepend_of(scheme));
  const auto adds_space = MUSTER_TRY(optional_bool(object, "add_prefix_space"));
  if (adds_space == false && options.prepend != MetaspacePrepend::Never) {
    return corrupt_json("add_prefix_space does not match prepend_scheme", scheme);
  }
  options.split = MUSTER_TRY(bool_field_or(object, "split", true));
  return options;
}

Result<bool> ends_in_bytes(const JsonObject& pre_tokenizer) {
  const auto steps = MUSTER_TRY(steps_of(pre_tokenizer, "pretokenizers"));
  std::size_t byte_level_count = 0;
  bool is_last = false;
  for (const JsonObject& step : steps) {
    const auto type = MUSTER_TRY(text_field(step, "type"));
    is_last = type == "ByteLevel";
    byte_level_count += is_last ? 1 : 0;
  }
  return is_last && byte_level_count == 1;
}

Result<std::unique_ptr<const PreTokenizer>> read_pre_tokenizer(const JsonObject& object,
                                                               ByteMapping mapping) {
  const auto objects = MUSTER_TRY(steps_of(object, "pretokenizers"));
  std::vector<std::unique_ptr<const PreTokenizer>> steps;
  for (const JsonObject& step_object : objects) {
    auto step = MUSTER_TRY(read_step(step_object, mapping == ByteMapping::Written));
    if (!steps.empty() && !step->text_start_mark().empty()) {
      // What another step leaves of a text tells no more where the text began.
      return unsupported_part("pre-tokenizer", "Metaspace with prepend_scheme first, not at first");
    }
    steps.push_back(std::move(step));
  }
  return steps.size() == 1 ? std::move(steps.front())
                           : make_pre_tokenizer_sequence(std::move(steps));
}

}  // namespace muster
