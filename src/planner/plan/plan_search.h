#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace muster {

/// The least number of bytes up to `most` for which `fits` holds, when more never fits less;
/// nullopt when not even `most` is enough. It may be a megabyte too much.
template <typename Fits>
std::optional<std::uint64_t> least_extra(std::uint64_t most, const Fits& fits) {
  constexpr std::uint64_t step = 1'000'000;
  if (!fits(most)) return std::nullopt;
  std::uint64_t bad = 0;
  std::uint64_t good = most;
  while (good - bad > step) {
    const auto middle = bad + (good - bad) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

/// The largest value in [least, most] for which `fits` holds, when it holds for small values and
/// not for large ones; nullopt when not even for `least`. Cost: about 2 log2(answer / least)
/// questions.
template <typename Fits>
std::optional<std::uint32_t> largest_that_fits(std::uint32_t least, std::uint32_t most,
                                               const Fits& fits) {
  if (!fits(least)) return std::nullopt;
  std::uint64_t good = least;
  std::uint64_t bad = std::uint64_t{most} + 1;
  while (good < most) {
    const auto probe = std::min<std::uint64_t>(2 * good, most);
    if (!fits(static_cast<std::uint32_t>(probe))) {
      bad = probe;
      break;
    }
    good = probe;
  }
  while (good + 1 < bad) {
    const auto middle = (good + bad) / 2;
    (fits(static_cast<std::uint32_t>(middle)) ? good : bad) = middle;
  }
  return static_cast<std::uint32_t>(good);
}

}  // namespace muster
