#include "spec/decoder_spec.h"

namespace muster {

std::string_view decoder_family_name(DecoderFamily family) {
  switch (family) {
    case DecoderFamily::Gpt2:
      return "gpt2";
    case DecoderFamily::Opt:
      return "opt";
    case DecoderFamily::GptNeox:
      return "gpt_neox";
    case DecoderFamily::Llama:
      return "llama";
    case DecoderFamily::Mistral:
      return "mistral";
    case DecoderFamily::Qwen2:
      return "qwen2";
    case DecoderFamily::Qwen3:
      return "qwen3";
    case DecoderFamily::Phi3:
      return "phi3";
    case DecoderFamily::Gemma2:
      return "gemma2";
    case DecoderFamily::Mixtral:
      return "mixtral";
  }
  return "unknown";
}

}  // namespace muster
