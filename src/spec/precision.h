#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster {

/// The number format of weights and products; sums, normalisation and the returned rows are
/// float32.
enum class Precision : std::uint8_t { Fp32, Bf16, Fp16 };

/// "fp32", "bf16", "fp16".
std::string_view precision_name(Precision precision);

/// The inverse of `precision_name`; nullopt for any other word.
std::optional<Precision> parse_precision(std::string_view name);

}  // namespace muster
