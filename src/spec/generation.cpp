// The words of what is asked of a decoder, and what follows from them for its cache.

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

std::string_view kv_cache_dtype_name(KvCacheDtype dtype) {
  switch (dtype) {
    case KvCacheDtype::Auto:
      return "auto";
    case KvCacheDtype::Fp32:
      return "fp32";
    case KvCacheDtype::Fp16:
      return "fp16";
    case KvCacheDtype::Int8:
      return "int8";
  }
  return "?";
}

std::optional<KvCacheDtype> parse_kv_cache_dtype(std::string_view name) {
  for (const auto dtype :
       {KvCacheDtype::Auto, KvCacheDtype::Fp32, KvCacheDtype::Fp16, KvCacheDtype::Int8}) {
    if (name == kv_cache_dtype_name(dtype)) return dtype;
  }
  return std::nullopt;
}

KvCacheDtype kept_as(KvCacheDtype asked, DecoderPrecision precision) {
  if (asked != KvCacheDtype::Auto) return asked;
  return precision == DecoderPrecision::Fp32 ? KvCacheDtype::Fp32 : KvCacheDtype::Fp16;
}

std::uint64_t kv_vector_bytes(KvCacheDtype kept, std::uint64_t size) {
  constexpr std::uint64_t kScale = 4;
  switch (kept) {
    case KvCacheDtype::Fp32:
      return 4 * size;
    case KvCacheDtype::Int8:
      return size + kScale;
    case KvCacheDtype::Auto:
    case KvCacheDtype::Fp16:
      break;
  }
  return 2 * size;
}

std::string_view finish_reason_name(FinishReason reason) {
  return reason == FinishReason::Stop ? "stop" : "length";
}

}  // namespace muster
