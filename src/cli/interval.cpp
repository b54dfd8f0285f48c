#include "cli/interval.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace muster {
namespace {

struct Unit {
  std::string_view name;
  double seconds;
};
constexpr std::array kUnits{Unit{"ms", 0.001}, Unit{"s", 1}, Unit{"m", 60}};

constexpr double kLeastSeconds = 0.01;  // faster than any driver has news
constexpr double kMostSeconds = 3600;

}  // namespace

Result<Duration> parse_interval(std::string_view flag, std::string_view text) {
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto rest = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& unit : kUnits) {
    if (fault != std::errc{} || rest != unit.name) continue;
    const auto in_seconds = number * unit.seconds;
    if (!(in_seconds >= kLeastSeconds && in_seconds <= kMostSeconds)) break;
    return std::chrono::round<Duration>(std::chrono::duration<double>(in_seconds));
  }
  return Error{
      ErrorKind::InvalidArgument,
      fmt::format("{} must be a time from 10ms to 60m, as 100ms, 0.5s or 2m: \"{}\"", flag, text)};
}

}  // namespace muster
