#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

/// What a flag takes, and a value to show as an example.
struct WholeRange {
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
  std::uint64_t example = 0;
};
struct NumberRange {
  double least = 0;
  double most = 0;
  double example = 0;
};

/// The number behind a flag: "--seed 7".
///
/// Errors: InvalidArgument with the range and the nearest right form, else the example:
/// `--seed must be a whole number from 0 to 9: "7.0"; did you mean 7?`. Threads: pure.
Result<std::uint64_t> whole_number_of(std::string_view flag, const std::string& text,
                                      const WholeRange& range);
Result<double> number_of(std::string_view flag, const std::string& text, const NumberRange& range);

}  // namespace muster
