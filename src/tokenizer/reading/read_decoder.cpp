// The decoders by their names in the file. A name that is not listed is an error and never a
// default: text decoded without one of its steps looks almost right. Options that would make a
// step loop or do nothing sensible, such as an empty suffix, are refused here, so that the
// decoders need not check.

#include <utility>
#include <vector>

#include "tokenizer/reading/tokenizer_json.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

using Made = Result<std::unique_ptr<const Decoder>>;

Made read_strip(const JsonObject& object) {
  StripDecoderOptions options;
  options.content = MUSTER_TRY(text_field(object, "content"));
  const bool is_character =
      !options.content.empty() && utf8_char_at(options.content, 0).size == options.content.size();
  if (!is_character) return corrupt_json("content is not one character", options.content);
  for (const auto& [name, count] :
       {std::pair("start", &options.start), std::pair("stop", &options.stop)}) {
    const auto element = MUSTER_TRY(field(object, name));
    if (element.get(*count) != simdjson::SUCCESS) {
      return corrupt_json("field is not a count", name);
    }
  }
  return make_strip_decoder(std::move(options));
}

Made read_step(const JsonObject& object) {
  const auto type = MUSTER_TRY(text_field(object, "type"));
  if (type == "WordPiece") {
    WordPieceDecoderOptions options;
    options.prefix = MUSTER_TRY(text_field(object, "prefix"));
    options.cleanup = MUSTER_TRY(bool_field(object, "cleanup"));
    return make_wordpiece_decoder(std::move(options));
  }
  if (type == "ByteLevel") return make_byte_level_decoder();
  if (type == "Fuse") return make_fuse_decoder();
  if (type == "ByteFallback") return make_byte_fallback_decoder();
  if (type == "Replace") {
    const auto pattern = MUSTER_TRY(pattern_field(object));
    auto content = MUSTER_TRY(text_field(object, "content"));
    auto regex = MUSTER_TRY(compile_pattern(pattern));
    return make_replace_decoder(std::move(regex), std::move(content));
  }
  if (type == "Strip") return read_strip(object);
  if (type == "Metaspace") {
    auto options = MUSTER_TRY(read_metaspace(object));
    const bool drops_first = options.prepend != MetaspacePrepend::Never;
    return make_metaspace_decoder(std::move(options.replacement), drops_first);
  }
  if (type == "BPEDecoder") {
    auto suffix = MUSTER_TRY(text_field(object, "suffix"));
    if (suffix.empty()) {
      return unsupported_part("decoder", "BPEDecoder without a suffix");
    }
    return make_bpe_decoder(std::move(suffix));
  }
  return unsupported_part("decoder", type);
}

}  // namespace

Result<std::unique_ptr<const Decoder>> read_decoder(const JsonObject& object) {
  const auto objects = MUSTER_TRY(steps_of(object, "decoders"));
  std::vector<std::unique_ptr<const Decoder>> steps;
  for (const JsonObject& step_object : objects) {
    auto step = MUSTER_TRY(read_step(step_object));
    steps.push_back(std::move(step));
  }
  return steps.size() == 1 ? std::move(steps.front()) : make_decoder_sequence(std::move(steps));
}

}  // namespace muster
