#include "spec/precision.h"

namespace muster {

std::string_view precision_name(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
      return "fp32";
    case Precision::Bf16:
      return "bf16";
    case Precision::Fp16:
      return "fp16";
    case Precision::Int8:
      return "int8";
  }
  return "?";
}

std::optional<Precision> parse_precision(std::string_view name) {
  for (const auto precision :
       {Precision::Fp32, Precision::Bf16, Precision::Fp16, Precision::Int8}) {
    if (name == precision_name(precision)) return precision;
  }
  return std::nullopt;
}

}  // namespace muster
