// A flood of refusals must not become a flood of lines. Each pair of status and reason gets its
// first line at once; what follows within a second is counted, and a timer reports the count. The
// table of pairs is bounded, and it is keyed by words of the server alone, so a client cannot fill
// it.

#include "server/request_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster {
namespace {

constexpr Duration kPeriod = std::chrono::seconds(1);
// Statuses times the words of the server's own; more would be a fault of ours, and is not told.
constexpr std::size_t kKindsMost = 128;

bool is_refusal(int status) {
  constexpr std::array kStatuses{401, 403, 408, 413, 429, 431};
  return status >= 500 || std::find(kStatuses.begin(), kStatuses.end(), status) != kStatuses.end();
}

// Only 500 is a fault of the server itself; the other refusals are what a limit or a shutdown is
// there for.
LogLevel level_of(int status) { return status == 500 ? LogLevel::Error : LogLevel::Warning; }

std::string kind_text(int status, std::string_view reason) {
  return fmt::format("{} with {}{}{}", status == 500 ? "failed" : "refused", status,
                     reason.empty() ? "" : " ", reason);
}

std::string_view beginning(std::string_view path) {
  constexpr std::size_t kShownMost = 200;
  return path.substr(0, kShownMost);
}

std::string answer_text(const AnsweredRequest& request) {
  auto text = fmt::format("{} {} {} in {:.2f} ms", request.method, beginning(request.path),
                          request.status, request.milliseconds);
  if (request.text_count) text += fmt::format(", {} texts", *request.text_count);
  if (request.token_count) text += fmt::format(", {} tokens", *request.token_count);
  text += fmt::format(", {}", request.asker);
  if (!request.reason.empty()) text += fmt::format(": {}", request.reason);
  return text;
}

}  // namespace

RequestLog::RequestLog(Write write, LogLevel level, EventLoop& loop, const Clock& clock)
    : write_(std::move(write)),
      level_(level),
      clock_(clock),
      timer_(loop.timer([this] { tell_untold(); })) {}

void RequestLog::event(LogLevel level, std::string_view text, std::string_view request_id) const {
  if (write_) write_({.level = level, .message = text, .request_id = request_id});
}

bool RequestLog::wants(int status) const { return level_ == LogLevel::Debug || is_refusal(status); }

void RequestLog::answered(const AnsweredRequest& request) {
  if (level_ == LogLevel::Debug) event(LogLevel::Debug, answer_text(request), request.request_id);
  if (is_refusal(request.status) && !request.is_probe) refused(request);
}

void RequestLog::refused(const AnsweredRequest& request) {
  if (!timer_) return;
  const auto now = clock_.now();
  const std::pair key{request.status, std::string(request.reason)};
  auto found = kinds_.find(key);
  if (found == kinds_.end()) {
    if (kinds_.size() >= kKindsMost) return;
    found = kinds_.emplace(key, Kind{.told_at = now - kPeriod}).first;
  }
  auto& kind = found->second;
  if (now - kind.told_at < kPeriod) {
    if (kind.untold_count++ == 0) timer_->set(now + kPeriod);
    return;
  }
  kind.told_at = now;
  event(level_of(request.status),
        fmt::format("{}: {} {}, {}", kind_text(request.status, request.reason), request.method,
                    beginning(request.path), request.asker),
        request.request_id);
}

void RequestLog::tell_untold() {
  for (auto& [key, kind] : kinds_) {
    if (kind.untold_count == 0) continue;
    event(level_of(key.first),
          fmt::format("{}: {} more since the line before", kind_text(key.first, key.second),
                      kind.untold_count),
          {});
    kind = {.told_at = clock_.now(), .untold_count = 0};
  }
}

void RequestLog::stop() {
  tell_untold();
  timer_.reset();
}

}  // namespace muster
