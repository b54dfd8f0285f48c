// One row says all of a route: method and path, who may call it, its handler, and
// the form of its errors. Nothing else lists the routes.

#include "server/routes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/text.h"
#include "server/handlers.h"

namespace muster {
namespace {

constexpr std::array kRoutes{
    Route{"POST", "/v1/embeddings", RouteScope::Embed, answer_embeddings, RouteKind::Compute},
    Route{"POST", "/v1/rerank", RouteScope::Embed, answer_rerank, RouteKind::Compute},
    Route{"POST", "/v1/search", RouteScope::Embed, answer_search, RouteKind::Compute},
    Route{"POST", "/v1/tokenize", RouteScope::Embed, answer_tokenize},
    Route{"POST", "/v1/chat/completions", RouteScope::Embed, answer_chat, RouteKind::Reply},
    Route{"POST", "/v1/completions", RouteScope::Embed, answer_completion, RouteKind::Reply},
    Route{"GET", "/v1/models", RouteScope::Embed, answer_models},
    Route{"GET", "/v1/models/{name}", RouteScope::Embed, answer_model},
    Route{"POST", "/v1/models/load", RouteScope::Admin, load_model},
    Route{"POST", "/v1/models/unload", RouteScope::Admin, unload_model},
    Route{"GET", "/livez", RouteScope::Open, answer_livez, RouteKind::Probe},
    Route{"GET", "/readyz", RouteScope::Open, answer_readyz, RouteKind::Probe},
    Route{"GET", "/health", RouteScope::Open, answer_health, RouteKind::Probe},
    Route{"GET", "/metrics", RouteScope::Read, answer_metrics},
    Route{"GET", "/v1/devices", RouteScope::Read, answer_devices},
    Route{"GET", "/v1/decisions", RouteScope::Read, answer_decisions},
    Route{"GET", "/v1/config", RouteScope::Read, answer_config, RouteKind::Settings},
    Route{"GET", "/openapi.yaml", RouteScope::Open, answer_openapi},
    Route{"GET", "/api/v1/gpu/stats", RouteScope::Read, answer_gpu_stats},
    Route{"GET", "/multigpu/health", RouteScope::Read, answer_fleet_health},
    Route{"GET", "/multigpu/config", RouteScope::Read, answer_fleet_config, RouteKind::Settings},
    Route{"POST", "/multigpu/config", RouteScope::Admin, change_config},
    Route{"GET", "/multigpu/stats", RouteScope::Read, answer_fleet_stats},
    Route{"GET", "/multigpu/gpu/{id}/stats", RouteScope::Read, answer_one_gpu},
    Route{"POST", "/multigpu/gpu/test", RouteScope::Admin, test_gpus},
    Route{"GET", "/multigpu/gpu/recommendations", RouteScope::Read, answer_recommendations},
    Route{"GET", "/multigpu/resources/status", RouteScope::Read, answer_resources},
    Route{"POST", "/multigpu/resources/manage", RouteScope::Admin, manage_resources},
    Route{"GET", "/multigpu/performance/metrics", RouteScope::Read, answer_performance},
    Route{"POST", "/v1/admin/drain", RouteScope::Admin, drain_device},
    Route{"POST", "/v1/admin/resume", RouteScope::Admin, resume_device},
    Route{"POST", "/v1/admin/restart", RouteScope::Admin, restart_device},
    Route{"GET", "/openapi.json", RouteScope::Open, answer_openapi_json},
    Route{"POST", "/embeddings", RouteScope::Embed, answer_embeddings, RouteKind::Compute},
    Route{"POST", "/rerank", RouteScope::Embed, answer_bare_rerank, RouteKind::Compute,
          ErrorForm::Tei},
    Route{"GET", "/models", RouteScope::Embed, answer_models},
    Route{"POST", "/v1/score", RouteScope::Embed, answer_score, RouteKind::Compute},
    Route{"POST", "/score", RouteScope::Embed, answer_score, RouteKind::Compute},
    Route{"GET", "/", RouteScope::Open, ollama_root, RouteKind::Plain, ErrorForm::Ollama},
    Route{"POST", "/", RouteScope::Embed, tei_embed, RouteKind::Compute, ErrorForm::Tei},
    Route{"POST", "/embed", RouteScope::Embed, tei_embed, RouteKind::Compute, ErrorForm::Tei},
    Route{"POST", "/similarity", RouteScope::Embed, tei_similarity, RouteKind::Compute,
          ErrorForm::Tei},
    Route{"POST", "/tokenize", RouteScope::Embed, tei_tokenize, RouteKind::Plain, ErrorForm::Tei},
    Route{"POST", "/decode", RouteScope::Embed, tei_decode, RouteKind::Plain, ErrorForm::Tei},
    Route{"GET", "/info", RouteScope::Embed, tei_info, RouteKind::Plain, ErrorForm::Tei},
    Route{"POST", "/api/embed", RouteScope::Embed, ollama_embed, RouteKind::Compute,
          ErrorForm::Ollama},
    Route{"POST", "/api/embeddings", RouteScope::Embed, ollama_embeddings, RouteKind::Compute,
          ErrorForm::Ollama},
    Route{"POST", "/api/generate", RouteScope::Embed, ollama_generate, RouteKind::Reply,
          ErrorForm::Ollama},
    Route{"POST", "/api/chat", RouteScope::Embed, ollama_chat, RouteKind::Reply, ErrorForm::Ollama},
    Route{"GET", "/api/tags", RouteScope::Embed, ollama_tags, RouteKind::Plain, ErrorForm::Ollama},
    Route{"GET", "/api/ps", RouteScope::Embed, ollama_ps, RouteKind::Plain, ErrorForm::Ollama},
    Route{"POST", "/api/show", RouteScope::Embed, ollama_show, RouteKind::Plain, ErrorForm::Ollama},
    Route{"GET", "/api/version", RouteScope::Open, ollama_version, RouteKind::Plain,
          ErrorForm::Ollama},
    Route{"POST", "/v2/embed", RouteScope::Embed, cohere_embed, RouteKind::Compute,
          ErrorForm::Cohere},
    Route{"POST", "/v2/rerank", RouteScope::Embed, cohere_rerank, RouteKind::Compute,
          ErrorForm::Cohere},
};
static_assert(kRoutes.size() == kRouteCount);

// What stands in `path` for the {…} of the pattern; an empty view for a pattern without one.
std::optional<std::string_view> match(std::string_view pattern, std::string_view path) {
  const std::size_t open = pattern.find('{');
  if (open == std::string_view::npos) {
    return pattern == path ? std::optional(std::string_view()) : std::nullopt;
  }
  const std::string_view tail = pattern.substr(pattern.find('}') + 1);
  if (!path.starts_with(pattern.substr(0, open)) || path.size() <= open + tail.size() ||
      !path.ends_with(tail)) {
    return std::nullopt;
  }
  const std::string_view value = path.substr(open, path.size() - open - tail.size());
  if (!tail.empty() && value.find('/') != std::string_view::npos) return std::nullopt;
  return value;
}

bool takes(const Route& route, std::string_view method) {
  return route.method == method || (method == "HEAD" && route.method == "GET");
}

std::string_view last_segment(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// What ends as the path does goes before what is spelled like it: /v1/health means /health.
std::optional<std::string> nearest_route(std::string_view path) {
  constexpr std::size_t kPathMost = 200;  // a longer one is nobody's slip of a key
  path = path.substr(0, kPathMost);
  const auto segment = last_segment(path);
  std::vector<std::string> patterns;
  std::vector<std::string> of_that_end;
  for (const Route& route : kRoutes) {
    patterns.emplace_back(route.pattern);
    const bool has_end = !segment.empty() && last_segment(route.pattern) == segment;
    if (has_end) of_that_end.emplace_back(route.pattern);
  }
  if (of_that_end.empty()) return nearest_name(path, patterns);
  if (auto nearest = nearest_name(path, of_that_end)) return nearest;
  return *std::min_element(of_that_end.begin(), of_that_end.end(),
                           [](const auto& a, const auto& b) { return a.size() < b.size(); });
}

// Ollama's routes that change its store of models: there is nothing like them here, and a name that
// is spelled like theirs would lead astray.
std::string_view instead_of(std::string_view path) {
  constexpr std::array<std::string_view, 5> kOfStore{"/api/pull", "/api/push", "/api/create",
                                                     "/api/copy", "/api/delete"};
  if (std::find(kOfStore.begin(), kOfStore.end(), path) == kOfStore.end()) return {};
  return "models are pulled by `muster pull`, loaded by POST /v1/models/load and unloaded by POST "
         "/v1/models/unload";
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

std::size_t index_of(const Route& route) {
  return static_cast<std::size_t>(&route - kRoutes.data());
}

bool begins_compute_call(std::string_view bytes) {
  constexpr std::string_view kPost = "POST ";
  if (!bytes.starts_with(kPost)) return false;
  bytes.remove_prefix(kPost.size());
  const std::string_view path = bytes.substr(0, bytes.find(' '));
  if (path.size() == bytes.size()) return false;  // the line has not come to the path's end
  return std::any_of(kRoutes.begin(), kRoutes.end(), [&](const Route& route) {
    return route.pattern == path && route.kind == RouteKind::Compute;
  });
}

ErrorForm error_form_of(std::string_view path) {
  for (const Route& route : kRoutes) {
    if (route.pattern == path) return route.errors;
  }
  // Ollama has more routes than are there, and its clients read the form that they know.
  const bool is_ollamas = path.starts_with("/api/") && !path.starts_with("/api/v1/");
  return is_ollamas ? ErrorForm::Ollama : ErrorForm::OpenAi;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char byte = text[i];
    if (byte == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      unsigned value = 0;
      const char* const end = text.data() + i + 3;
      const auto read = std::from_chars(text.data() + i + 1, end, value, 16);
      if (read.ptr != end || read.ec != std::errc() || value == 0) return std::nullopt;
      byte = static_cast<char>(value);
      i += 2;
    }
    decoded += byte;
  }
  return decoded;
}

std::variant<RouteMatch, RouteMiss> find_route(std::string_view method, std::string_view path) {
  constexpr std::string_view kMount = "/api/v1";
  if (path.starts_with("/api/v1/multigpu/")) path.remove_prefix(kMount.size());
  RouteMiss miss;
  // A literal path goes before a pattern that would take it too: /v1/models/load before {name}.
  const auto literal = [&](const Route& route) { return route.pattern == path; };
  const bool is_literal = std::any_of(kRoutes.begin(), kRoutes.end(), literal);
  for (const Route& route : kRoutes) {
    if (is_literal && !literal(route)) continue;
    const auto value = match(route.pattern, path);
    if (!value) continue;
    if (takes(route, method)) {
      auto parameter = percent_decoded(*value);
      if (!parameter) break;
      return RouteMatch{&route, *std::move(parameter)};
    }
    if (!miss.allow.empty()) miss.allow += ", ";
    miss.allow += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  if (!miss.allow.empty()) return miss;
  miss.instead = instead_of(path);
  if (miss.instead.empty()) miss.nearest = nearest_route(path);
  return miss;
}

}  // namespace muster
