// Two counters decide how long a request is tried. A loss (no connection, a deadline, a gateway's
// error) is counted up to a small bound, because a server that is gone stays gone; a refusal (429,
// 503) is counted up to a large one, because the server is there and asks for patience. A batch
// that is refused because of its content is asked again text by text, so that one bad text costs no
// other its row.

#include "client/server_caller.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

namespace muster {
namespace {

// With the first wait of 250 ms: 18 s of trying, enough for a server to start again.
constexpr int kLossesMost = 8;
constexpr Duration kWaitMost = std::chrono::seconds(5);
// At a second each, ten minutes of a server that refuses everything: a large model is loaded by
// then.
constexpr int kRefusalsMost = 600;
constexpr std::int64_t kRetryAfterMost = 60;  // seconds; a longer one is asked again before

// The state of a model whose devices were all sent to rest.
constexpr std::string_view kDrained = "drained";

Error cancelled_error() { return {ErrorKind::Cancelled, "cancelled"}; }

bool is_good(int status) { return status >= 200 && status <= 299; }

// 429 and 503 come with Retry-After: the server is well and wants no more at the moment.
bool is_refusal(int status) { return status == 429 || status == 503; }

// The server, or a proxy before it, has not got it done: it may the next time.
bool is_lapse(int status) { return status == 408 || status == 502 || status == 504; }

// True when a smaller request may be answered: one of the texts is what it cannot do.
bool is_about_texts(const HttpAnswer& answer) {
  if (answer.status == 413 || answer.status == 422 || answer.status == 500) return true;
  if (answer.status != 400) return false;
  const auto json = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json::json_pointer pointer("/error/param");
  if (!json.is_object() || !json.contains(pointer)) return false;
  return json.at(pointer).is_null() || json.at(pointer) == "input";
}

std::optional<Duration> retry_after(const HttpAnswer& answer) {
  const auto header = answer.header("Retry-After");
  if (!header) return std::nullopt;
  std::int64_t count = 0;
  const char* const end = header->data() + header->size();
  const auto read = std::from_chars(header->data(), end, count);
  if (read.ec != std::errc() || read.ptr != end || count < 0) return std::nullopt;
  return std::chrono::seconds(std::min(count, kRetryAfterMost));
}

// The wait before try `attempt`, which counts from 1.
Duration back_off(Duration first, int attempt) {
  constexpr int kDoublingsMost = 16;
  return std::min<Duration>(first * (1 << std::min(attempt - 1, kDoublingsMost)), kWaitMost);
}

std::vector<std::string_view> views_of(std::span<const RemoteText> texts) {
  std::vector<std::string_view> views;
  views.reserve(texts.size());
  for (const auto& text : texts) views.emplace_back(text.text);
  return views;
}

}  // namespace

ServerCaller::ServerCaller(std::unique_ptr<HttpClient> http, const ServerAccess& access,
                           Duration first_wait, ServerCallerHooks hooks)
    : http_(std::move(http)),
      url_(access.url),
      headers_(access.headers),
      first_wait_(first_wait),
      hooks_(std::move(hooks)) {}

Result<ServerCaller> ServerCaller::open(const ServerAccess& access, Duration first_wait,
                                        ServerCallerHooks hooks) {
  auto http = MUSTER_TRY(HttpClient::open(access.url, access.http));
  return ServerCaller(std::move(http), access, first_wait, std::move(hooks));
}

// Whatever the answer says, but for what is worth asking again.
Result<HttpAnswer> ServerCaller::ask(std::string_view method, const std::string& target,
                                     const std::string& body) {
  int loss_count = 0;
  int refusal_count = 0;
  for (;;) {
    auto answer = http_->call(method, target, headers_, body);
    Duration pause{};
    if (!answer) {
      const auto kind = answer.error().kind;
      if (kind != ErrorKind::Unavailable && kind != ErrorKind::DeadlineExceeded) {
        return answer.error();
      }
      hooks_.on_trouble(answer.error());
      if (++loss_count > kLossesMost) {
        return Error{ErrorKind::Unavailable,
                     fmt::format("{} ({} tries)", answer.error().message, loss_count)};
      }
      pause = back_off(first_wait_, loss_count);
    } else {
      // A full queue (429) is no trouble: that is how a busy server paces its clients.
      if (answer->status == 503) hooks_.on_trouble(server_error(answer->status, answer->body));
      if (is_refusal(answer->status) && refusal_count < kRefusalsMost) {
        ++refusal_count;
        pause = retry_after(*answer).value_or(back_off(first_wait_, refusal_count));
      } else if (is_lapse(answer->status) && loss_count < kLossesMost) {
        pause = back_off(first_wait_, ++loss_count);
      } else {
        return answer;
      }
    }
    if (!hooks_.wait(pause)) return cancelled_error();
  }
}

Result<ListedModel> ServerCaller::settled_model(const std::string& name) {
  for (int attempt = 1; attempt <= kRefusalsMost; ++attempt) {
    const auto answer = MUSTER_TRY(ask("GET", model_target(name), {}));
    if (!is_good(answer.status)) return server_error(answer.status, answer.body);
    auto model = MUSTER_TRY(parse_listed_model(answer.body));
    if (model.state == "ready") {
      hooks_.on_well();
      return model;
    }
    if (model.state == kDrained) return model;
    if (model.state == "failed") {
      return Error{ErrorKind::Unavailable,
                   fmt::format("the server cannot load {}: {}", name, model.reason)};
    }
    hooks_.on_trouble({ErrorKind::Unavailable, fmt::format("{} is loading {}", url_, name)});
    if (!hooks_.wait(back_off(first_wait_, attempt))) return cancelled_error();
  }
  return Error{ErrorKind::DeadlineExceeded, fmt::format("the server is still loading {}", name)};
}

// Loading ends by itself; devices that were sent to rest may do so for days.
Result<ListedModel> ServerCaller::wait_for_model(const std::string& name) {
  auto model = MUSTER_TRY(settled_model(name));
  if (model.state != kDrained) return model;
  return Error{ErrorKind::Unavailable,
               fmt::format("every device of {} is drained; muster ctl resume all", name)};
}

Result<std::vector<RemoteResult>> ServerCaller::compute(const ListedModel& model,
                                                        const std::string& prompt,
                                                        std::span<const RemoteText> texts) {
  const auto answer = MUSTER_TRY(
      ask("POST", "/v1/embeddings", embeddings_body(model.name, prompt, views_of(texts))));
  if (is_good(answer.status)) return read_rows(answer, model, prompt, texts);
  const auto error = server_error(answer.status, answer.body);
  if (!is_about_texts(answer)) return error;
  std::vector<RemoteResult> results;
  // The recursion below is one level deep: a single text ends here.
  if (texts.size() == 1) {
    results.push_back({.key = texts.front().key, .tokens = {}, .row = {}, .failure = error});
    return results;
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto alone = MUSTER_TRY(compute(model, prompt, texts.subspan(i, 1)));
    results.push_back(std::move(alone.front()));
  }
  return results;
}

Result<std::vector<RemoteResult>> ServerCaller::read_rows(const HttpAnswer& answer,
                                                          const ListedModel& model,
                                                          const std::string& prompt,
                                                          std::span<const RemoteText> texts) {
  auto rows = MUSTER_TRY(parse_rows(answer.body, texts.size(), model.dim));
  const auto counted =
      MUSTER_TRY(ask("POST", "/v1/tokenize", tokenize_body(model.name, prompt, views_of(texts))));
  if (!is_good(counted.status)) return server_error(counted.status, counted.body);
  const auto tokens = MUSTER_TRY(parse_token_counts(counted.body, texts.size()));
  // The server may have been started again, or the model loaded again, in another way: asked after
  // the rows have come, it cannot have been another one before them without being noticed. One that
  // is drained since then computes as it did.
  const auto now = MUSTER_TRY(settled_model(model.name));
  if (!compute_alike(model, now)) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("{} computes {} in another way now: its class was {} and is {}", url_,
                             model.name, model.equality_class, now.equality_class)};
  }
  std::vector<RemoteResult> results;
  results.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    results.push_back({.key = texts[i].key,
                       .tokens = tokens[i],
                       .row = std::move(rows[i]),
                       .failure = std::nullopt});
  }
  return results;
}

}  // namespace muster
