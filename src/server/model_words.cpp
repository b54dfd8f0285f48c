// What models are called in the answers of several APIs.

#include "server/model_words.h"

namespace muster {

std::string_view dtype_word(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
      return "float32";
    case Precision::Bf16:
      return "bfloat16";
    case Precision::Fp16:
      return "float16";
    case Precision::Int8:
      return "int8";
  }
  return "";
}

std::string_view quantization_word(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
      return "F32";
    case Precision::Bf16:
      return "BF16";
    case Precision::Fp16:
      return "F16";
    case Precision::Int8:
      return "I8";
  }
  return "";
}

std::string_view quantization_word(DecoderPrecision precision) {
  switch (precision) {
    case DecoderPrecision::Fp32:
      return "F32";
    case DecoderPrecision::Bf16:
      return "BF16";
    case DecoderPrecision::Int8:
      return "I8";
    case DecoderPrecision::Own:
      break;
  }
  return "";
}

std::string_view family_word(EncoderFamily family) {
  switch (family) {
    case EncoderFamily::Bert:
      return "bert";
    case EncoderFamily::Roberta:
      return "roberta";
    case EncoderFamily::DistilBert:
      return "distilbert";
    case EncoderFamily::Mpnet:
      return "mpnet";
  }
  return "";
}

}  // namespace muster
