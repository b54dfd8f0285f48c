// Keeps two promises whatever order things happen in: a request is answered once, and it is counted
// once. A client that goes away, a refusal by the HTTP server and a late result all meet the same
// two flags. The answer is handed over before it is counted, since the client waits only for the
// first. The callback for a client that has gone holds a weak pointer, because the exchange owns
// the way back on which it is registered.

#include "server/exchange.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/wall_clock.h"
#include "server/rate_limit_headers.h"

namespace muster {

Exchange::Exchange(std::shared_ptr<ServerState> state, const Route& route,
                   std::string route_parameter, std::string id)
    : parameter(std::move(route_parameter)),
      request_id(std::move(id)),
      state_(std::move(state)),
      route_(route),
      started_(state_->clock.now()) {}

std::string Exchange::asker() const {
  return caller_name.empty() ? request.peer : "key " + caller_name;
}

void Exchange::log_event(std::string_view text, LogLevel level) const {
  state_->log->event(level, std::string(text) + ", asked for by " + asker(), request_id);
}

void Exchange::begin(HttpRequest&& whole, HttpRespond way_back) {
  request = std::move(whole);
  bytes_in_ = request.body.size();
  respond_.emplace(std::move(way_back));
  started_ = state_->clock.now();
}

HttpResponse Exchange::refusal(const ApiError& error, HttpRequest head) {
  request = std::move(head);
  is_answered_ = true;
  reason_ = error.code.value_or(error.type);
  HttpResponse response = error_response(error, route_.errors);
  response.headers.emplace_back("X-Request-Id", request_id);
  count(response.status, response.body.size());
  return response;
}

void Exchange::answer(HttpResponse&& response) {
  if (is_answered_) return;
  is_answered_ = true;
  const int status = response.status;
  const std::uint64_t bytes_out = response.body.size();
  add_headers(response);
  (*respond_)(std::move(response));
  count(status, bytes_out);  // the client waits for the one and not for the other
}

void Exchange::add_headers(HttpResponse& response) const {
  response.headers.emplace_back("X-Request-Id", request_id);
  const bool is_call = route_.scope == RouteScope::Embed && route_.method == "POST";
  if (!is_call || caller_name.empty()) return;
  const bool is_reply = route_.kind == RouteKind::Reply;
  const auto usage =
      is_reply ? state_->generation.usage_of(caller_name) : state_->service.usage_of(caller_name);
  if (usage) add_rate_limits(*usage, response.headers);
}

void Exchange::begin_stream(HttpResponse&& head, std::function<void()> on_room) {
  if (is_answered_) return;
  add_headers(head);
  stream_bytes_ = head.body.size();
  respond_->begin_stream(std::move(head), std::move(on_room));
}

bool Exchange::write(std::string_view bytes) {
  if (is_answered_) return true;
  stream_bytes_ += bytes.size();
  return respond_->write(bytes);
}

void Exchange::end_stream(const ApiError* failure) {
  if (is_answered_) return;
  is_answered_ = true;
  if (failure != nullptr) {
    reason_ = failure->code.value_or(failure->type);
    log_event("the reply failed in its stream: " + failure->message, LogLevel::Warning);
  }
  respond_->end_stream();
  count(200, stream_bytes_);
}

void Exchange::replace_answer(HttpResponse& refusal) {
  is_answered_ = true;
  const ApiError words = api_error(refusal.status, "");
  reason_ = words.code.value_or(words.type);
  refusal.headers.emplace_back("X-Request-Id", request_id);
  count(refusal.status, refusal.body.size());
}

// Once: what was sent in place of an answer has been counted before that.
void Exchange::count(int status, std::uint64_t bytes_out) {
  if (std::exchange(is_counted_, true)) return;
  const Duration took = state_->clock.now() - started_;
  state_->statistics.count(route_, status, took);
  if (state_->log->wants(status)) {
    state_->log->answered({.method = request.method,
                           .path = request.path,
                           .asker = asker(),
                           .reason = reason_,
                           .request_id = request_id,
                           .text_count = text_count,
                           .token_count = token_count,
                           .status = status,
                           .milliseconds = seconds(took) * 1000,
                           .is_probe = route_.kind == RouteKind::Probe});
  }
  // The entry carries the time at which the request began, not that of its answer.
  if (!state_->audit) return;
  state_->audit->write({.unix_seconds = unix_seconds() - seconds(took),
                        .request_id = request_id,
                        .key_name = caller_name,
                        .client_name = request.client_name,
                        .peer = request.peer,
                        .method = request.method,
                        .path = request.path,
                        .model = model,
                        .text_count = text_count,
                        .token_count = token_count,
                        .status = status,
                        .milliseconds = seconds(took) * 1000,
                        .bytes_in = bytes_in_,
                        .bytes_out = bytes_out,
                        .reason = reason_});
}

void Exchange::refuse(const ApiError& error) {
  reason_ = error.code.value_or(error.type);
  answer(error_response(error, error_form.value_or(route_.errors)));
}

void Exchange::answer(int status, const nlohmann::ordered_json& body) {
  answer({.status = status, .content_type = "application/json", .body = json_text(body)});
}

void Exchange::on_client_gone(std::function<void()> cancel) {
  if (is_answered_) return;
  respond_->on_client_gone([self = weak_from_this(), cancel = std::move(cancel)] {
    const auto exchange = self.lock();
    if (!exchange || exchange->is_answered_) return;
    constexpr int kClientClosedRequest = 499;  // as nginx logs it; nobody reads it
    exchange->is_answered_ = true;
    exchange->reason_ = "client gone";
    exchange->count(kClientClosedRequest, exchange->stream_bytes_);
    cancel();
  });
}

namespace {

bool is_loading(const ServedModelStatus& model) { return model.state == ModelState::Loading; }

// Before its files are read it has no devices. One that waits for memory may wait for ever.
bool is_loading(const ServedDecoderStatus& model) {
  const auto loads = [](const auto& device) {
    const bool is_starting =
        device.state == GroupState::Starting || device.state == GroupState::Restarting;
    return is_starting && !device.waits_for_memory;
  };
  return model.state == ModelState::Loading &&
         (model.devices.empty() || std::any_of(model.devices.begin(), model.devices.end(), loads));
}

template <typename Models>
void add_loading(const Models& models, std::set<std::string, std::less<>>& names) {
  for (const auto& model : models) {
    if (is_loading(model)) names.insert(model.name);
  }
}

std::set<std::string, std::less<>> loading_models(const ServerState& state) {
  std::set<std::string, std::less<>> names;
  add_loading(state.service.models(), names);
  add_loading(state.generation.models(), names);
  return names;
}

}  // namespace

void note_start(ServerState& state) { state.starting = loading_models(state); }

bool takes_calls(const ServerState& state) {
  if (state.service.is_ready()) return true;
  return state.generation.is_ready() && !state.service.status().is_draining;
}

bool is_ready(ServerState& state) {
  if (!state.starting.empty()) {
    const auto loading = loading_models(state);
    std::erase_if(state.starting, [&](const auto& name) { return loading.count(name) == 0; });
  }
  return state.starting.empty() && takes_calls(state);
}

std::vector<GroupStatus> devices_of(const ServerState& state) {
  return with_decoders(state.service.fleet().groups, state.service.models(),
                       state.generation.decoders().hosted());
}

TelemetrySnapshot snapshot_of(const ServerState& state) {
  if (state.collector != nullptr) return state.collector->snapshot();
  TelemetrySnapshot snapshot;
  snapshot.at = state.clock.now();
  snapshot.unix_seconds = unix_seconds();
  return snapshot;
}

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace muster
