#include <utility>
#include <vector>

#include "tokenizer/reading/tokenizer_json.h"

namespace muster {
namespace {

using Made = Result<std::unique_ptr<const Decoder>>;

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
