// What a key has left of its limits, as OpenAI's clients read it.

#include "server/rate_limit_headers.h"

#include <fmt/format.h>

#include <chrono>
#include <string_view>

namespace muster {
namespace {

void add_limit(const LimitUsage& usage, std::string_view what, HttpHeaders& headers) {
  headers.emplace_back(fmt::format("x-ratelimit-limit-{}", what),
                       fmt::format("{:.0f}", usage.limit));
  headers.emplace_back(fmt::format("x-ratelimit-remaining-{}", what),
                       std::to_string(static_cast<std::uint64_t>(usage.remaining)));
  headers.emplace_back(fmt::format("x-ratelimit-reset-{}", what), reset_text(usage.reset));
}

}  // namespace

void add_rate_limits(const CallerUsage& usage, HttpHeaders& headers) {
  if (usage.requests) add_limit(*usage.requests, "requests", headers);
  if (usage.tokens) add_limit(*usage.tokens, "tokens", headers);
}

std::string reset_text(Duration left) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  constexpr std::int64_t kSecond = 1000;
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60;
  if (ms < kSecond) return fmt::format("{}ms", ms);
  const auto seconds = (ms + kSecond - 1) / kSecond;
  const auto minutes = seconds / kMinute;
  if (minutes == 0) return fmt::format("{}s", seconds);
  if (minutes < kHour) return fmt::format("{}m{}s", minutes, seconds % kMinute);
  return fmt::format("{}h{}m{}s", minutes / kHour, minutes % kHour, seconds % kMinute);
}

}  // namespace muster
