#include "spec/generation.h"

namespace muster {

std::string_view decoder_precision_name(DecoderPrecision precision) {
  switch (precision) {
    case DecoderPrecision::Fp32:
      return "fp32";
    case DecoderPrecision::Bf16:
      return "bf16";
    case DecoderPrecision::Own:
      return "own";
    case DecoderPrecision::Int8:
      return "int8";
  }
  return "?";
}

std::optional<DecoderPrecision> parse_decoder_precision(std::string_view name) {
  for (const auto precision : {DecoderPrecision::Fp32, DecoderPrecision::Bf16,
                               DecoderPrecision::Own, DecoderPrecision::Int8}) {
    if (name == decoder_precision_name(precision)) return precision;
  }
  return std::nullopt;
}

std::string_view finish_reason_name(FinishReason reason) {
  return reason == FinishReason::Stop ? "stop" : "length";
}

}  // namespace muster
