#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster {

/// The number format of weights and products; sums, normalisation and the returned rows are
/// float32.
///
/// Int8, of encoders on CPUs and only where it is asked for: weights in 8 bits with a scale for
/// each output, rows with one for each row, sums in whole numbers.
enum class Precision : std::uint8_t { Fp32, Bf16, Fp16, Int8 };

/// "fp32", "bf16", "fp16", "int8".
std::string_view precision_name(Precision precision);

/// The inverse of `precision_name`; nullopt for any other word.
std::optional<Precision> parse_precision(std::string_view name);

}  // namespace muster
