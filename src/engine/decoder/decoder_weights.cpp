// Which loader a family has.

#include "engine/decoder/decoder_weights.h"

#include <fmt/format.h>

#include "engine/decoder/gpt2_family.h"
#include "engine/decoder/gpt_neox_family.h"
#include "engine/decoder/llama_family.h"
#include "engine/decoder/opt_family.h"

namespace muster::engine {

std::uint64_t DecoderWeights::bytes() const {
  std::uint64_t sum = head.bytes();
  for (const auto& layer : layers) {
    sum += layer.qkv.bytes() + layer.attention_out.bytes() + layer.up.bytes() + layer.down.bytes();
  }
  return sum;
}

Result<DecoderWeights> load_decoder_weights(const WeightLoading& loading) {
  switch (loading.spec.family) {
    case DecoderFamily::Llama:
    case DecoderFamily::Mistral:
    case DecoderFamily::Qwen2:
    case DecoderFamily::Qwen3:
    case DecoderFamily::Phi3:
    case DecoderFamily::Gemma2:
      return load_llama_family(loading);
    case DecoderFamily::Gpt2:
      return load_gpt2_family(loading);
    case DecoderFamily::Opt:
      return load_opt_family(loading);
    case DecoderFamily::GptNeox:
      return load_gpt_neox_family(loading);
    case DecoderFamily::Mixtral:
      break;
  }
  return Error{ErrorKind::Unsupported,
               fmt::format("this family can be planned and not computed yet: {}",
                           decoder_family_name(loading.spec.family))};
}

}  // namespace muster::engine
