// When to ask again, in the manner of huggingface_hub. Five retries in a row without gain end it;
// an attempt that brought new bytes starts the count anew, with a bound on all of them, so a slow
// trickle cannot go on forever. A pause that the hub asks for is kept unless it is longer than the
// hub's own window. A hub that cannot be reached for the list is reported at once, as a wrong
// address would look the same.

#include "hub/hub_caller.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

namespace muster {
namespace {

// Source: huggingface_hub 2.x, utils/_http.py, `http_backoff`: 5 retries, 1 s doubling to 8 s, and
// the statuses that are tried again.
constexpr int kRetriesMost = 5;
constexpr int kPauseSecondsMost = 8;
constexpr std::array<int, 6> kRetriedStatuses{408, 429, 500, 502, 503, 504};

// A connection that gives a little each time is still not tried forever.
constexpr int kAttemptsMost = 1000;

// The hub counts requests in windows of five minutes.
// Source: Hub documentation, "Hub Rate limits".
constexpr std::uint64_t kAskedPauseSecondsMost = 300;

// A hundred thousand files with 300 bytes each, which is what an entry takes.
constexpr std::size_t kListingBytesMost = 32U << 20U;

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} && end != text.data() ? std::optional(number) : std::nullopt;
}

// Retry-After in seconds, else the `t=` of the hub's RateLimit header: "api";r=0;t=55.
// Source: RFC 9110, section 10.2.3; draft-ietf-httpapi-ratelimit-headers-10, section 4.
std::optional<std::uint64_t> asked_pause(const TransferHead& head) {
  if (const auto after = find_header(head.headers, "Retry-After")) return whole_number(*after);
  const auto limit = find_header(head.headers, "RateLimit");
  const auto at = limit ? limit->find(";t=") : std::string_view::npos;
  if (head.status != 429 || at == std::string_view::npos) return std::nullopt;
  return whole_number(limit->substr(at + 3));
}

bool can_retry(const TransferEnd& end) {
  if (end.fault == TransferFault::Broken || end.fault == TransferFault::Unreachable) return true;
  return end.fault == TransferFault::None &&
         (std::find(kRetriedStatuses.begin(), kRetriedStatuses.end(), end.head.status) !=
              kRetriedStatuses.end() ||
          end.head.status == 416 || end.head.status / 100 == 2);  // 2xx: shorter than was stated
}

std::string cause_of(const TransferEnd& end) {
  if (end.fault != TransferFault::None) return end.fault_text;
  if (end.head.status / 100 == 2) return "the answer is shorter than was stated";
  return fmt::format("{} {}", end.head.status, http_status_text(end.head.status));
}

}  // namespace

std::string encode_url_part(std::string_view text, bool keeps_slashes) {
  constexpr std::string_view kUnreserved = "-._~";
  std::string out;
  for (const char c : text) {
    const bool stays = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       kUnreserved.find(c) != std::string_view::npos || (c == '/' && keeps_slashes);
    out += stays ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

Result<HubCaller> HubCaller::open(const HubAccess& access, const PullEvents& events) {
  auto transfer = MUSTER_TRY(
      Transfer::open({.certificates = access.certificates, .is_cancelled = events.is_cancelled}));
  return HubCaller(access, events, std::move(transfer));
}

Result<std::string> HubCaller::listing(std::string_view model, std::string_view revision) {
  const TransferRequest request{
      .url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", access_.endpoint, model,
                         encode_url_part(revision, false)),
      .token = access_.token};
  const HubQuestion question{.model = model, .revision = revision, .file = {}};
  RetryBook book;
  while (true) {
    std::string body;
    const auto end = MUSTER_TRY(transfer_->get(
        request, [&](const TransferHead& /*head*/, std::string_view bytes) -> Status {
          if (body.size() + bytes.size() > kListingBytesMost) {
            return Error{ErrorKind::Corrupt, fmt::format("{} answers with more than a list of "
                                                         "files for {}",
                                                         access_.endpoint, model)};
          }
          body += bytes;
          return Done{};
        }));
    if (end.fault == TransferFault::None && end.head.status == 200) return body;
    if (end.fault == TransferFault::Unreachable) return hub_refusal(access_, question, end);
    MUSTER_TRY(wait_to_retry(question, end, book));
  }
}

Result<TransferEnd> HubCaller::file_once(std::string_view model, std::string_view commit,
                                         std::string_view path, std::uint64_t from,
                                         const TransferTake& take) {
  return transfer_->get({.url = fmt::format("{}/{}/resolve/{}/{}", access_.endpoint, model, commit,
                                            encode_url_part(path, true)),
                         .token = access_.token,
                         .from = from},
                        take);
}

Status HubCaller::wait_to_retry(const HubQuestion& question, const TransferEnd& end,
                                RetryBook& book) {
  auto refusal = hub_refusal(access_, question, end);
  if (!can_retry(end)) return refusal;
  if (++book.attempts_ > kRetriesMost || ++book.attempts_all_ > kAttemptsMost) {
    return Error{refusal.kind,
                 fmt::format("gave up after {} attempts: {}", book.attempts_, refusal.message)};
  }
  const auto asked = asked_pause(end.head);
  if (asked && *asked > kAskedPauseSecondsMost) {
    return Error{refusal.kind,
                 fmt::format("{}; it asks to come back in {} s", refusal.message, *asked)};
  }
  const auto pause = std::chrono::seconds(
      asked ? *asked : std::min<std::uint64_t>(kPauseSecondsMost, 1U << (book.attempts_ - 1)));
  events_.on_notice(fmt::format("{}: {}; trying again in {} s",
                                question.file.empty() ? question.model : question.file,
                                cause_of(end), pause.count()));
  events_.wait(pause);
  if (events_.is_cancelled()) return Error{ErrorKind::Cancelled, "interrupted"};
  return Done{};
}

}  // namespace muster
