#include "server/server.h"

#include <utility>

#include "base/text.h"
#include "base/wall_clock.h"
#include "server/access.h"
#include "server/exchange.h"
#include "server/handlers.h"
#include "server/request_id.h"

namespace muster {
namespace {

// A refusal that the HTTP server words itself, as the API's errors are.
void dress(HttpResponse& response) {
  ApiError error = api_error(response.status, std::string(trim(response.body)));
  if (response.status == 503) error.retry_after = std::chrono::seconds(1);
  HttpResponse dressed = error_response(error);
  for (auto& header : response.headers) {
    if (header.first != "Retry-After") dressed.headers.push_back(std::move(header));
  }
  response = std::move(dressed);
}

HttpResponse missing_response(const HttpRequest& request, const RouteMiss& miss) {
  if (!miss.allow.empty()) {
    HttpResponse response = error_response(
        api_error(405, "This route does not take " + request.method + " but " + miss.allow));
    response.headers.emplace_back("Allow", miss.allow);
    return response;
  }
  constexpr std::size_t kShownMost = 200;  // bytes of a path that a client made up
  std::string message = "There is no route " + request.path.substr(0, kShownMost);
  if (miss.nearest) message += "; did you mean " + *miss.nearest + "?";
  return error_response(api_error(404, message));
}

// By the request line alone. Whoever has no key gains half a millisecond of an idle core with it.
bool begins_compute_call(std::string_view bytes) {
  return bytes.starts_with("POST /v1/embeddings ") || bytes.starts_with("POST /v1/rerank ");
}

class ServerOnLoop final : public Server {
 public:
  explicit ServerOnLoop(std::shared_ptr<ServerState> state) : state_(std::move(state)) {}

  ~ServerOnLoop() override {
    http_.reset();
    state_->http = nullptr;
    if (state_->tester.joinable()) state_->tester.join();
    if (state_->adviser.joinable()) state_->adviser.join();
    // Each of these holds the state that it waits in.
    state_->awaiting_health.clear();
    state_->awaiting_advice.clear();
  }

  Status open() {
    const ServeOptions& serving = state_->options;
    if (!serving.keys_file.empty()) {
      state_->keys = MUSTER_TRY(ApiKeys::load(serving.keys_file));
      state_->service.reconfigure(serving, limits());
    }
    if (!serving.audit_file.empty()) {
      state_->audit = MUSTER_TRY(AuditLog::open(serving.audit_file));
    }
    HttpServerOptions options = state_->options.http;
    options.dress_refusal = [state = state_](HttpResponse& response) {
      state->statistics.count_stray(response.status);
      dress(response);
      response.headers.emplace_back("X-Request-Id", request_id_for(std::nullopt));
    };
    options.on_first_bytes = [state = state_](std::string_view bytes) {
      if (begins_compute_call(bytes)) state->service.expect_call();
    };
    http_ = MUSTER_TRY(
        HttpServer::start(options, state_->loop, [this](HttpRequest request, HttpRespond respond) {
          take(std::move(request), std::move(respond));
        }));
    state_->http = http_.get();
    return Done{};
  }

  std::uint16_t port() const override { return http_->port(); }

  Status reload(const ServeOptions& options) override {
    std::shared_ptr<const ApiKeys> keys;
    if (!options.keys_file.empty()) keys = MUSTER_TRY(ApiKeys::load(options.keys_file));
    if (options.http.tls) MUSTER_TRY(http_->reload_tls(*options.http.tls));
    state_->keys = std::move(keys);
    state_->options = options;
    state_->service.reconfigure(options, limits());
    return Done{};
  }

  void begin_drain() override { http_->close_idle(); }

 private:
  void take(HttpRequest request, HttpRespond respond) {
    std::string id = request_id_for(request.header("X-Request-Id"));
    auto outcome = find_route(request.method, request.path);
    if (const auto* miss = std::get_if<RouteMiss>(&outcome)) {
      HttpResponse response = missing_response(request, *miss);
      state_->statistics.count_stray(response.status);
      response.headers.emplace_back("X-Request-Id", std::move(id));
      return respond(std::move(response));
    }
    auto& match = *std::get_if<RouteMatch>(&outcome);
    const auto exchange =
        std::make_shared<Exchange>(state_, *match.route, std::move(request),
                                   std::move(match.parameter), std::move(respond), std::move(id));
    if (const auto is_allowed = admit(*exchange); !is_allowed) {
      return exchange->refuse(is_allowed.error());
    }
    handle(exchange);
  }

  ApiStatus admit(Exchange& exchange) {
    const RouteScope scope = exchange.route().scope;
    if (state_->keys == nullptr) {
      if (scope == RouteScope::Admin) MUSTER_TRY(check_local_admin(exchange.request));
    } else if (scope != RouteScope::Open) {
      exchange.caller_name =
          MUSTER_TRY(check_key(*state_->keys, exchange.request, scope, unix_seconds()));
    }
    return check_content_type(exchange.request, scope);
  }

  std::map<std::string, CallerLimits> limits() const {
    return state_->keys ? state_->keys->limits() : std::map<std::string, CallerLimits>();
  }

  const std::shared_ptr<ServerState> state_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const ServeOptions& options,
                                              InferenceService& service, Collector* collector,
                                              EventLoop& loop, ServerHooks hooks,
                                              const Clock& clock) {
  auto server = std::make_unique<ServerOnLoop>(
      std::make_shared<ServerState>(ServerState{.options = options,
                                                .service = service,
                                                .collector = collector,
                                                .loop = loop,
                                                .hooks = std::move(hooks),
                                                .clock = clock,
                                                .started = clock.now(),
                                                .start_unix_seconds = unix_seconds()}));
  MUSTER_TRY(server->open());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace muster
