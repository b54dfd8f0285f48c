// Lengths of prompts and answers, fixed or log-normal: those of real requests are skewed, and a
// log-normal law has that shape with two parameters that a user can name. A draw is rounded and
// clamped instead of repeated, so each length uses the same number of random values and a seed
// gives the same trial.

#include "bench/load/length_law.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace muster {
namespace {

constexpr double kSigmaMost = 5;  // e^5 is a spread of a hundred and fifty; more is a slip

// The whole text must be the number: "128x" is a slip and not 128.
std::optional<double> number_in(std::string_view text, double least, double most) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value >= least && value <= most ? std::optional(value) : std::nullopt;
}

}  // namespace

std::uint64_t LengthLaw::draw(RandomStream& random) const {
  const double length = sigma > 0 ? median * std::exp(sigma * random.normal()) : median;
  return static_cast<std::uint64_t>(
      std::clamp(std::round(length), 1.0, static_cast<double>(kLengthMost)));
}

// In the form that parse_length_law reads, so a result can be repeated from what it states.
std::string LengthLaw::text() const {
  return sigma > 0 ? fmt::format("lognormal:{}:{}", median, sigma) : fmt::format("{}", median);
}

Result<LengthLaw> parse_length_law(std::string_view flag, std::string_view text) {
  const auto parts = split(text, ':');
  const auto most = static_cast<double>(kLengthMost);
  std::optional<double> median;
  std::optional<double> sigma = 0;
  if (parts.size() == 1) {
    median = number_in(parts[0], 1, most);
  } else if (parts.size() == 3 && parts[0] == "lognormal") {
    median = number_in(parts[1], 1, most);
    sigma = number_in(parts[2], 0, kSigmaMost);
  }
  if (!median || !sigma) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} must be a length from 1 to {}, as 128, or lognormal:MEDIAN:SIGMA "
                             "with a sigma from 0 to {}, as lognormal:128:0.6: \"{}\"",
                             flag, kLengthMost, kSigmaMost, text)};
  }
  return LengthLaw{.median = *median, .sigma = *sigma};
}

}  // namespace muster
