// Joins keys, audit log, routes and HTTP. A request is judged by its head, so one that is refused
// costs no body; when the keys have changed while the body came, it is judged again. The order
// of the destructor matters: first no request can arrive, then the threads end, then what holds the
// state is emptied.

#include "server/server.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/wall_clock.h"
#include "server/access.h"
#include "server/exchange.h"
#include "server/handlers.h"
#include "server/refusals.h"
#include "server/request_id.h"

namespace muster {
namespace {

// The body of a route that computes nothing: a few names and settings.
constexpr std::uint64_t kControlBodyMost = 1 << 20;

// Called on the audit log's thread. The loop outlives it.
void tell_of_audit(ServerState& state, const std::optional<Error>& error, std::uint64_t lost) {
  if (!state.hooks.log) return;
  const std::string text =
      error ? "lines of the audit log are lost: " + error->message
            : "the audit log is written again; lines lost until now: " + std::to_string(lost);
  state.loop.post([write = state.hooks.log, text, is_bad = error.has_value()] {
    write({.level = is_bad ? LogLevel::Error : LogLevel::Info, .message = text});
  });
}

std::string fields_text(const std::vector<std::string>& names) {
  std::string text = names.empty() ? ", without kept fields" : ", with the fields";
  for (const auto& name : names) text += (&name == &names.front() ? " " : ", ") + name;
  return text;
}

// nullptr: nobody needs a key.
Result<std::shared_ptr<const ApiKeys>> keys_of(const ServeOptions& options) {
  if (!options.keys_file.empty()) return ApiKeys::load(options.keys_file);
  if (!options.api_key.empty()) return ApiKeys::of_one(options.api_key);
  return std::shared_ptr<const ApiKeys>();
}

class ServerOnLoop final : public Server {
 public:
  explicit ServerOnLoop(std::shared_ptr<ServerState> state) : state_(std::move(state)) {}

  ~ServerOnLoop() override {
    http_.reset();
    // Its thread may hold the state for a moment. As the last one to do so, it would end the log,
    // and so wait for itself.
    state_->audit.reset();
    state_->http = nullptr;
    if (state_->tester.joinable()) state_->tester.join();
    if (state_->adviser.joinable()) state_->adviser.join();
    // Each of these holds the state that it waits in.
    state_->searches.reset();
    state_->readers.reset();
    state_->tasks.reset();
    state_->log->stop();
    state_->awaiting_health.clear();
    state_->awaiting_advice.clear();
  }

  Status open() {
    const ServeOptions& serving = state_->options;
    state_->log = std::make_unique<RequestLog>(state_->hooks.log, serving.log.level, state_->loop,
                                               state_->clock);
    state_->keys = MUSTER_TRY(keys_of(serving));
    if (state_->keys) reconfigure();
    if (!serving.audit_file.empty()) {
      state_->audit = MUSTER_TRY(AuditLog::open(
          serving.audit_file,
          [weak = std::weak_ptr(state_)](const std::optional<Error>& error, std::uint64_t lost) {
            if (const auto state = weak.lock()) tell_of_audit(*state, error, lost);
          }));
    }
    MUSTER_TRY(open_searches());
    HttpServerOptions options = state_->options.http;
    options.dress_refusal = [this](HttpResponse& response, const HttpRefused& refused) {
      dress_refusal(response, error_form_of(refused.path));
      if (refused.judged) {
        return std::static_pointer_cast<Exchange>(refused.judged)->replace_answer(response);
      }
      HttpRequest request;
      request.method = refused.method;
      request.path = refused.path;
      request.peer = refused.peer;
      request.client_name = refused.client_name;
      count_stray(response, request, request_id_for(std::nullopt));
    };
    options.on_head = [this](HttpRequest& head) { return judge(head); };
    // Whoever has no key gains half a millisecond of an idle core with it.
    options.on_first_bytes = [state = state_](std::string_view bytes) {
      if (begins_compute_call(bytes)) state->service.expect_call();
    };
    http_ = MUSTER_TRY(
        HttpServer::start(options, state_->loop, [](HttpRequest&& request, HttpRespond respond) {
          const auto exchange = std::static_pointer_cast<Exchange>(std::move(request.judged));
          take(exchange, std::move(request), std::move(respond));
        }));
    state_->http = http_.get();
    return Done{};
  }

  std::uint16_t port() const override { return http_->port(); }
  std::optional<std::size_t> key_count() const override {
    return state_->keys ? std::optional(state_->keys->count()) : std::nullopt;
  }

  // All that can fail comes first: when a key file or a certificate is bad, the old ones stay in
  // force.
  Status reload(const ServeOptions& options) override {
    auto keys = MUSTER_TRY(keys_of(options));
    if (options.http.tls) MUSTER_TRY(http_->reload_tls(*options.http.tls));
    state_->keys = std::move(keys);
    apply(options);
    return Done{};
  }

  void apply(const ServeOptions& options) override {
    state_->options = options;
    state_->log->set_level(options.log.level);
    reconfigure();
  }

  void begin_drain(std::function<void()> on_sent) override { http_->drain(std::move(on_sent)); }
  // Replies that are streamed end with an error instead of in the middle.
  void give_up() override {
    state_->generation.give_up();
    http_->give_up();
  }

 private:
  // Route, key and type of a body are known by the head; what is refused need not be sent first.
  HttpVerdict judge(HttpRequest& head) {
    std::string id = request_id_for(head.header("X-Request-Id"));
    auto outcome = find_route(head.method, head.path);
    if (const auto* miss = std::get_if<RouteMiss>(&outcome)) {
      HttpResponse response = missing_route_response(head, *miss);
      count_stray(response, head, std::move(id));
      return {.refusal = std::move(response)};
    }
    auto& match = *std::get_if<RouteMatch>(&outcome);
    auto exchange =
        std::make_shared<Exchange>(state_, *match.route, std::move(match.parameter), std::move(id));
    const auto is_allowed = admit(*exchange, head);
    if (!is_allowed) {
      return {.refusal = exchange->refusal(is_allowed.error(), std::move(head))};
    }
    HttpVerdict verdict;
    if (match.route->scope != RouteScope::Embed) {
      verdict.body_bytes = std::min(kControlBodyMost, state_->options.http.limits.body_bytes);
    }
    head.judged = std::move(exchange);
    return verdict;
  }

  static void take(const ExchangePtr& exchange, HttpRequest&& request, HttpRespond respond) {
    exchange->begin(std::move(request), std::move(respond));
    // A body may take minutes, and a key may be withdrawn meanwhile.
    if (exchange->judged_by != exchange->state().keys) {
      const auto is_allowed = admit(*exchange, exchange->request);
      if (!is_allowed) return exchange->refuse(is_allowed.error());
    }
    exchange->route().answer(exchange);
  }

  static ApiStatus admit(Exchange& exchange, const HttpRequest& head) {
    const Route& route = exchange.route();
    const ServerState& state = exchange.state();
    exchange.judged_by = state.keys;
    exchange.caller_name.clear();
    exchange.is_admin = false;
    if (state.keys == nullptr) {
      // Calls for vectors show no paths, and they come by the ten thousand.
      const bool is_call = route.scope == RouteScope::Embed && route.method == "POST";
      if (!is_call) {
        const auto is_local = check_local_admin(head);
        exchange.is_admin = static_cast<bool>(is_local);
        if (route.scope == RouteScope::Admin && !is_local) return is_local.error();
      }
      if (route.kind == RouteKind::Settings) MUSTER_TRY(check_host(head));
    } else if (route.scope != RouteScope::Open) {
      auto verdict = check_key(*state.keys, head, route.scope, unix_seconds());
      exchange.caller_name = std::move(verdict.caller.name);
      exchange.is_admin = !verdict.refusal && verdict.caller.may(KeyScope::Admin);
      if (verdict.refusal) return *std::move(verdict.refusal);
    }
    if (route.method == "POST" && state.http != nullptr && state.http->is_draining()) {
      ApiError ending = api_error(503, "The server is shutting down");
      ending.retry_after = kComeAgain;
      return ending;
    }
    return check_content_type(head, route.scope);
  }

  Status open_searches() {
    if (state_->options.searches.empty()) return Done{};
    const auto models = state_->service.models();
    state_->searches = MUSTER_TRY(
        CorpusSearches::open(state_->options.searches, models, state_->loop, state_->clock));
    for (const auto& [name, corpus] : state_->searches->corpora()) {
      const auto* model = model_of(*corpus, models);
      state_->log->event(LogLevel::Info,
                         "index " + name + ": " + with_thousands(corpus->vectors().row_count()) +
                             " rows, of the model " + (model != nullptr ? model->name : "?") +
                             fields_text(corpus->field_names()),
                         "");
    }
    return Done{};
  }

  // A request that no route took, or that could not be read.
  void count_stray(HttpResponse& response, const HttpRequest& request, std::string id) {
    state_->statistics.count_stray(response.status);
    response.headers.emplace_back("X-Request-Id", id);
    const bool is_whole = !request.path.empty();
    state_->log->answered(
        {.method = request.method.empty() ? std::string_view("?") : request.method,
         .path = is_whole ? request.path : std::string_view("a request that never became whole"),
         .asker = request.peer,
         .request_id = id,
         .status = response.status});
    if (!state_->audit) return;
    const ApiError words = api_error(response.status, "");
    state_->audit->write({.unix_seconds = unix_seconds(),
                          .request_id = std::move(id),
                          .key_name = {},
                          .client_name = request.client_name,
                          .peer = request.peer,
                          .method = request.method,
                          .path = request.path,
                          .model = {},
                          .status = response.status,
                          .bytes_out = response.body.size(),
                          .reason = words.code.value_or(words.type)});
  }

  void reconfigure() {
    state_->service.reconfigure(state_->options, limits());
    state_->generation.reconfigure(state_->options, limits());
  }

  std::map<std::string, CallerLimits> limits() const {
    return state_->keys ? state_->keys->limits() : std::map<std::string, CallerLimits>();
  }

  const std::shared_ptr<ServerState> state_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const ServeOptions& options, const ServedWork& work,
                                              EventLoop& loop, ServerHooks hooks,
                                              const Clock& clock) {
  auto state = std::make_shared<ServerState>(ServerState{.options = options,
                                                         .service = work.service,
                                                         .generation = work.generation,
                                                         .collector = work.collector,
                                                         .loop = loop,
                                                         .hooks = std::move(hooks),
                                                         .clock = clock,
                                                         .started = clock.now(),
                                                         .start_unix_seconds = unix_seconds()});
  note_start(*state);
  auto server = std::make_unique<ServerOnLoop>(std::move(state));
  MUSTER_TRY(server->open());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace muster
