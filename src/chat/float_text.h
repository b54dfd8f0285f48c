#pragma once

#include <string>

namespace muster {

/// A float as Python's repr() writes it: "0.1", "1e-05", "1e+16", "2.0", "nan".
/// Source: CPython 3.11, float_repr_style "short".
std::string float_text(double number);

}  // namespace muster
