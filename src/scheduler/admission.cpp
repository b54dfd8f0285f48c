// Two questions before a call is let in: has its caller used up a limit, and would the queue grow
// too long. Nothing is charged until both say yes. Limits are leaky buckets that empty at the
// allowed rate; only the fill and the time of the last change are kept, so a caller costs no timer.
// Tokens are charged by estimate and corrected at the end. A call above a whole minute's limit
// passes when its bucket is empty.

#include "scheduler/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

namespace muster {
namespace {

constexpr std::uint64_t kTextsPerRequest = 32;

// A request with many texts counts as several, or a limit on requests could be evaded by large
// ones.
double requests_of(const AdmissionRequest& request) {
  if (request.request_count > 0) return static_cast<double>(request.request_count);
  const auto parts = (request.text_count + kTextsPerRequest - 1) / kTextsPerRequest;
  return static_cast<double>(std::max<std::uint64_t>(1, parts));
}

std::uint64_t at_once_of(const AdmissionRequest& request) {
  return std::max<std::uint64_t>(1, request.request_count);
}

/// Whole seconds, as the header Retry-After counts them (RFC 9110, section 10.2.3), never 0; a day
/// stands for all that is longer.
Duration retry_after(double wait_seconds) {
  return std::chrono::seconds(
      static_cast<std::int64_t>(std::clamp(std::ceil(wait_seconds), 1.0, 86'400.0)));
}

// "1 request", "60 requests".
std::string counted(double count, std::string_view noun) {
  return fmt::format("{:.6g} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

double Admission::Bucket::used_now(double per_minute, TimePoint now) const {
  return std::max(0.0, used - seconds(now - at) * per_minute / 60);
}

void Admission::Bucket::use(double amount, double per_minute, TimePoint now) {
  used = std::max(0.0, used_now(per_minute, now) + amount);
  at = now;
}

std::optional<Duration> Admission::Bucket::wait(double amount, double per_minute,
                                                TimePoint now) const {
  const double too_much = used_now(per_minute, now) + std::min(amount, per_minute) - per_minute;
  if (too_much <= 0) return std::nullopt;
  return retry_after(too_much * 60 / per_minute);
}

LimitUsage Admission::Bucket::usage(double per_minute, TimePoint now) const {
  const double used_of_it = used_now(per_minute, now);
  const double seconds_left = per_minute > 0 ? used_of_it * 60 / per_minute : 0;
  return {.limit = per_minute,
          .remaining = std::max(0.0, per_minute - used_of_it),
          .reset = std::chrono::duration_cast<Duration>(
              std::chrono::duration<double>(std::min(seconds_left, 86'400.0)))};
}

std::optional<CallerUsage> Admission::usage_of(const std::string& caller, TimePoint now) const {
  const auto found = callers_.find(caller);
  if (found == callers_.end()) return std::nullopt;
  const auto& known = found->second;
  const auto& limits = known.limits;
  if (!limits.requests_per_minute && !limits.tokens_per_minute) return std::nullopt;
  CallerUsage usage;
  if (limits.requests_per_minute) {
    usage.requests = known.requests.usage(*limits.requests_per_minute, now);
  }
  if (limits.tokens_per_minute) {
    usage.tokens = known.tokens.usage(*limits.tokens_per_minute, now);
  }
  return usage;
}

// The fills stay: a reload of the settings must not hand out a fresh minute.
void Admission::set_limits(std::map<std::string, CallerLimits> limits) {
  for (auto& [name, caller] : callers_) caller.limits = {};
  for (auto& [name, limit] : limits) callers_[name].limits = limit;
}

std::optional<Refused> Admission::ask(const AdmissionRequest& request, const QueueState& queue,
                                      TimePoint now) {
  const auto tokens = static_cast<double>(request.token_estimate);
  auto& caller = callers_[request.caller];
  if (auto refused = ask_caller(request.caller, caller, request, tokens, now)) return refused;
  if (auto refused = ask_queue(request, queue, tokens)) return refused;
  const auto& limits = caller.limits;
  if (limits.requests_per_minute) {
    caller.requests.use(requests_of(request), *limits.requests_per_minute, now);
  }
  if (limits.tokens_per_minute) caller.tokens.use(tokens, *limits.tokens_per_minute, now);
  caller.running_count += at_once_of(request);
  if (request.is_interactive) caller.interactive_tokens += request.token_estimate;
  return std::nullopt;
}

std::optional<Refused> Admission::ask_caller(const std::string& name, const Caller& caller,
                                             const AdmissionRequest& request, double tokens,
                                             TimePoint now) const {
  const auto& [requests_per_minute, tokens_per_minute, requests_at_once] = caller.limits;
  const auto who = name.empty() ? std::string("without a key") : "key " + name;
  const auto asked = at_once_of(request);
  if (requests_at_once && asked > *requests_at_once) {
    return Refused{.reason = fmt::format("{}: {} at once, and {} are asked for", who,
                                         counted(*requests_at_once, "request"), asked),
                   .is_own_limit = true,
                   .is_final = true};
  }
  if (requests_at_once && caller.running_count + asked > *requests_at_once) {
    return Refused{retry_after(1),
                   fmt::format("{}: {} at once", who, counted(*requests_at_once, "request")), true};
  }
  if (requests_per_minute) {
    if (const auto wait = caller.requests.wait(requests_of(request), *requests_per_minute, now)) {
      return Refused{
          *wait,
          fmt::format("{} has used its {} a minute", who, counted(*requests_per_minute, "request")),
          true};
    }
  }
  if (tokens_per_minute) {
    if (const auto wait = caller.tokens.wait(tokens, *tokens_per_minute, now)) {
      return Refused{
          *wait,
          fmt::format("{} has used its {} a minute", who, counted(*tokens_per_minute, "token")),
          true};
    }
  }
  return std::nullopt;
}

// From the hard limits to the soft one: texts, tokens, then time. The time counts only what goes
// before this call. Where nothing does, the call is taken whatever its size, since no wait would
// make it smaller.
std::optional<Refused> Admission::ask_queue(const AdmissionRequest& request,
                                            const QueueState& queue, double tokens) const {
  const auto outstanding = static_cast<double>(queue.outstanding_tokens);
  const auto ahead = static_cast<double>(queue.tokens_ahead);
  // How long until so many of the tokens that are there are done; a second where no speed is known.
  const auto done_after = [&](double tokens_there, double tokens_done) {
    const double speed = queue.tokens_per_second.value_or(0);
    return retry_after(speed > 0 ? std::min(tokens_there, tokens_done) / speed : 1);
  };
  const auto* where = queue.eligible_device_count == 0 ? "; no device is ready" : "";
  if (queue.queued_texts + request.text_count > options_.queued_texts_most) {
    const auto excess = queue.queued_texts + request.text_count - options_.queued_texts_most;
    const auto waiting = std::max<std::uint64_t>(1, queue.queued_texts);
    return Refused{
        done_after(outstanding,
                   outstanding * static_cast<double>(excess) / static_cast<double>(waiting)),
        fmt::format("{} texts wait, {} more were asked for and {} may wait{}", queue.queued_texts,
                    request.text_count, options_.queued_texts_most, where)};
  }
  const auto tokens_most = static_cast<double>(options_.queued_tokens_most);
  if (outstanding + tokens > tokens_most) {
    return Refused{
        done_after(outstanding, outstanding + tokens - tokens_most),
        fmt::format("{} tokens wait, {:.0f} more were asked for and {} may wait{}",
                    queue.outstanding_tokens, tokens, options_.queued_tokens_most, where)};
  }
  const double known = queue.tokens_per_second.value_or(0);
  const double speed = known > 0 ? known : kUnknownTokensPerSecond;
  const double budget = seconds(options_.queue_budget) * speed;
  if (queue.tokens_ahead == 0 || ahead + tokens <= budget) return std::nullopt;
  if (known <= 0) {
    return Refused{retry_after(1), fmt::format("no speed is known yet: {} tokens wait, {:.0f} more "
                                               "were asked for and {:.0f} may wait until then{}",
                                               queue.tokens_ahead, tokens, budget, where)};
  }
  return Refused{done_after(ahead, ahead + tokens - budget),
                 fmt::format("too busy: the queue would be {:.1f} s long and may be {:.1f} s",
                             (ahead + tokens) / speed, seconds(options_.queue_budget))};
}

// A caller's interactive share is bounded by its running calls together, so a flood of small
// queries does not crowd out those of others.
Lane Admission::lane(const AdmissionRequest& request, double tokens_most) {
  if (!request.is_interactive) return Lane::Bulk;
  const auto found = callers_.find(request.caller);
  const auto running = found == callers_.end() ? 0 : found->second.interactive_tokens;
  const auto tokens = static_cast<double>(running + request.token_estimate);
  const bool is_too_much = tokens > tokens_most;
  if (found == callers_.end()) return is_too_much ? Lane::Bulk : Lane::Interactive;
  auto& flooded = found->second.flooded;
  if (running == 0 || tokens <= flooded / 2) flooded = 0;
  if (is_too_much) flooded = std::max(flooded, tokens_most);
  // Half of it, as the speed that it follows wavers.
  const bool is_flood = flooded >= tokens_most / 2 && tokens > tokens_most / 2;
  return is_too_much || is_flood ? Lane::Bulk : Lane::Interactive;
}

void Admission::grow(AdmissionRequest& request, std::uint64_t tokens, TimePoint now) {
  request.token_estimate += tokens;
  const auto found = callers_.find(request.caller);
  if (found == callers_.end() || found->second.running_count == 0) return;
  auto& caller = found->second;
  if (request.is_interactive) caller.interactive_tokens += tokens;
  const auto& limit = caller.limits.tokens_per_minute;
  if (limit) caller.tokens.use(static_cast<double>(tokens), *limit, now);
}

void Admission::on_end(const AdmissionRequest& request, std::uint64_t token_count, TimePoint now) {
  const auto found = callers_.find(request.caller);
  if (found == callers_.end() || found->second.running_count == 0) return;
  auto& caller = found->second;
  caller.running_count -= std::min(caller.running_count, at_once_of(request));
  if (request.is_interactive) {
    caller.interactive_tokens -= std::min(caller.interactive_tokens, request.token_estimate);
  }
  if (caller.limits.tokens_per_minute) {
    const double more =
        static_cast<double>(token_count) - static_cast<double>(request.token_estimate);
    caller.tokens.use(more, *caller.limits.tokens_per_minute, now);
  }
}

}  // namespace muster
