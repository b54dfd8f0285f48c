#pragma once

#include <optional>
#include <string_view>

#include "spec/encoder_spec.h"

namespace muster {

/// "cls", "mean", "max", "last".
std::string_view pooling_name(Pooling pooling);

/// The inverse of `pooling_name`; nullopt for any other word.
std::optional<Pooling> parse_pooling(std::string_view name);

}  // namespace muster
