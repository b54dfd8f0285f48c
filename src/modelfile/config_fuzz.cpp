#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "modelfile/model_config.h"
#include "modelfile/model_description.h"
#include "modelfile/rerank_config.h"

namespace {

// A description that computing with cannot overflow: every unit's bytes add up to the model's.
void check_description(std::string_view text) {
  const auto model = muster::describe_config(text);
  if (!model) {
    MUSTER_CHECK(!model.error().message.empty());
    return;
  }
  MUSTER_CHECK(!model->shape.layers.empty() && model->shape.hidden_size > 0);
  std::uint64_t units = 0;
  std::size_t tensors = 0;
  for (const auto& unit : model->units) {
    units += unit.stored_bytes;
    tensors += unit.tensors.size();
  }
  MUSTER_CHECK(tensors == model->tensors.size());
  MUSTER_CHECK(units == model->stored_bytes() && units <= 1ULL << 50U);
}

}  // namespace

// Any text as each of a model's JSON files: an Error, or dimensions that can be computed with.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto encoder = muster::parse_encoder_config(text)) {
    MUSTER_CHECK(encoder->head_size() > 0 && encoder->head_size() <= encoder->hidden_size);
    MUSTER_CHECK(encoder->length_max() > 0);
    MUSTER_CHECK(encoder->length_max() <= encoder->position_count);
    MUSTER_CHECK(encoder->padding_id < encoder->vocab_size ||
                 encoder->family == muster::EncoderFamily::Mpnet);
  }
  check_description(text);
  if (const auto rerank = muster::parse_rerank_config(text); rerank && *rerank) {
    MUSTER_CHECK((*rerank)->label_count > 0);
  }
  static_cast<void>(muster::parse_score_activation(text));
  static_cast<void>(muster::parse_segment_use(text, muster::EncoderFamily::Bert));
  static_cast<void>(muster::is_cross_encoder(text));
  static_cast<void>(muster::parse_sentence_modules(text));
  static_cast<void>(muster::parse_pooling_config("1_Pooling/config.json", text));
  static_cast<void>(muster::parse_length_config("sentence_bert_config.json", text));
  static_cast<void>(muster::parse_tokenizer_length(text));
  if (const auto prompts = muster::parse_prompt_config(text); prompts && prompts->default_prompt) {
    MUSTER_CHECK(!prompts->prompts.empty());
  }
  return 0;
}
