// Which function knows a family's tensors.

#include "engine/decoder/decoder_tensors.h"

#include <fmt/format.h>

#include "engine/decoder/gpt2_family.h"
#include "engine/decoder/gpt_neox_family.h"
#include "engine/decoder/llama_family.h"
#include "engine/decoder/opt_family.h"

namespace muster::engine {

Result<DecoderTensors> find_decoder_tensors(const WeightLoading& loading) {
  switch (loading.spec.family) {
    case DecoderFamily::Llama:
    case DecoderFamily::Mistral:
    case DecoderFamily::Qwen2:
    case DecoderFamily::Qwen3:
    case DecoderFamily::Phi3:
    case DecoderFamily::Gemma2:
    case DecoderFamily::Mixtral:
      return llama_tensors(loading);
    case DecoderFamily::Gpt2:
      return gpt2_tensors(loading);
    case DecoderFamily::Opt:
      return opt_tensors(loading);
    case DecoderFamily::GptNeox:
      return gpt_neox_tensors(loading);
  }
  return Error{ErrorKind::Unsupported, fmt::format("this family is not computed: {}",
                                                   decoder_family_name(loading.spec.family))};
}

}  // namespace muster::engine
