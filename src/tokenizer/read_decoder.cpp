#include <utility>

#include "tokenizer/tokenizer_json.h"

namespace muster {
namespace {

using Made = Result<std::unique_ptr<const Decoder>>;

Made read_one(const JsonObject& object, int depth) {
  const auto type = MUSTER_TRY(text_field(object, "type"));
  if (type == "Sequence") {
    if (depth == kNestingMax) {
      return unsupported_part("nesting of", type);
    }
    std::vector<std::unique_ptr<const Decoder>> steps;
    const auto elements = MUSTER_TRY(array_field(object, "decoders"));
    for (const JsonElement element : elements) {
      const auto step_object = MUSTER_TRY(as_object(element, "decoders"));
      auto step = MUSTER_TRY(read_one(step_object, depth + 1));
      steps.push_back(std::move(step));
    }
    return make_decoder_sequence(std::move(steps));
  }
  if (type == "WordPiece") {
    WordPieceDecoderOptions options;
    options.prefix = MUSTER_TRY(text_field(object, "prefix"));
    options.cleanup = MUSTER_TRY(bool_field(object, "cleanup"));
    return make_wordpiece_decoder(std::move(options));
  }
  if (type == "ByteLevel") return make_byte_level_decoder();
  if (type == "Fuse") return make_fuse_decoder();
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
  return read_one(object, 0);
}

}  // namespace muster
