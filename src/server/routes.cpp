#include "server/routes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::array<Route, kRouteCount> kRoutes{{
    {RouteId::Embeddings, "POST", "/v1/embeddings", RouteScope::Embed},
    {RouteId::Rerank, "POST", "/v1/rerank", RouteScope::Embed},
    {RouteId::Tokenize, "POST", "/v1/tokenize", RouteScope::Embed},
    {RouteId::Models, "GET", "/v1/models", RouteScope::Embed},
    {RouteId::Model, "GET", "/v1/models/{name}", RouteScope::Embed},
    {RouteId::LoadModel, "POST", "/v1/models/load", RouteScope::Admin},
    {RouteId::UnloadModel, "POST", "/v1/models/unload", RouteScope::Admin},
    {RouteId::Livez, "GET", "/livez", RouteScope::Open},
    {RouteId::Readyz, "GET", "/readyz", RouteScope::Open},
    {RouteId::Health, "GET", "/health", RouteScope::Read},
    {RouteId::Metrics, "GET", "/metrics", RouteScope::Read},
    {RouteId::Devices, "GET", "/v1/devices", RouteScope::Read},
    {RouteId::Decisions, "GET", "/v1/decisions", RouteScope::Read},
    {RouteId::ShowConfig, "GET", "/v1/config", RouteScope::Read},
    {RouteId::OpenApi, "GET", "/openapi.yaml", RouteScope::Open},
    {RouteId::GpuStats, "GET", "/api/v1/gpu/stats", RouteScope::Read},
    {RouteId::FleetHealth, "GET", "/multigpu/health", RouteScope::Read},
    {RouteId::FleetConfig, "GET", "/multigpu/config", RouteScope::Read},
    {RouteId::ChangeConfig, "POST", "/multigpu/config", RouteScope::Admin},
    {RouteId::FleetStats, "GET", "/multigpu/stats", RouteScope::Read},
    {RouteId::OneGpuStats, "GET", "/multigpu/gpu/{id}/stats", RouteScope::Read},
    {RouteId::TestGpus, "POST", "/multigpu/gpu/test", RouteScope::Admin},
    {RouteId::Recommendations, "GET", "/multigpu/gpu/recommendations", RouteScope::Read},
    {RouteId::Resources, "GET", "/multigpu/resources/status", RouteScope::Read},
    {RouteId::ManageResources, "POST", "/multigpu/resources/manage", RouteScope::Admin},
    {RouteId::Performance, "GET", "/multigpu/performance/metrics", RouteScope::Read},
    {RouteId::Drain, "POST", "/v1/admin/drain", RouteScope::Admin},
    {RouteId::Resume, "POST", "/v1/admin/resume", RouteScope::Admin},
    {RouteId::Restart, "POST", "/v1/admin/restart", RouteScope::Admin},
    {RouteId::OpenApiJson, "GET", "/openapi.json", RouteScope::Open},
    {RouteId::BareEmbeddings, "POST", "/embeddings", RouteScope::Embed},
    {RouteId::BareRerank, "POST", "/rerank", RouteScope::Embed, ErrorForm::Tei},
    {RouteId::BareModels, "GET", "/models", RouteScope::Embed},
    {RouteId::Score, "POST", "/v1/score", RouteScope::Embed},
    {RouteId::BareScore, "POST", "/score", RouteScope::Embed},
    {RouteId::TeiRoot, "POST", "/", RouteScope::Embed, ErrorForm::Tei},
    {RouteId::TeiEmbed, "POST", "/embed", RouteScope::Embed, ErrorForm::Tei},
    {RouteId::TeiSimilarity, "POST", "/similarity", RouteScope::Embed, ErrorForm::Tei},
    {RouteId::TeiTokenize, "POST", "/tokenize", RouteScope::Embed, ErrorForm::Tei},
    {RouteId::TeiDecode, "POST", "/decode", RouteScope::Embed, ErrorForm::Tei},
    {RouteId::TeiInfo, "GET", "/info", RouteScope::Embed, ErrorForm::Tei},
    {RouteId::OllamaEmbed, "POST", "/api/embed", RouteScope::Embed, ErrorForm::Ollama},
    {RouteId::OllamaEmbeddings, "POST", "/api/embeddings", RouteScope::Embed, ErrorForm::Ollama},
    {RouteId::OllamaTags, "GET", "/api/tags", RouteScope::Embed, ErrorForm::Ollama},
    {RouteId::OllamaShow, "POST", "/api/show", RouteScope::Embed, ErrorForm::Ollama},
    {RouteId::OllamaVersion, "GET", "/api/version", RouteScope::Open, ErrorForm::Ollama},
    {RouteId::CohereEmbed, "POST", "/v2/embed", RouteScope::Embed, ErrorForm::Cohere},
    {RouteId::CohereRerank, "POST", "/v2/rerank", RouteScope::Embed, ErrorForm::Cohere},
    {RouteId::Search, "POST", "/v1/search", RouteScope::Embed},
}};

constexpr bool are_in_order() {
  for (std::size_t i = 0; i < kRoutes.size(); ++i) {
    if (static_cast<std::size_t>(kRoutes[i].id) != i) return false;
  }
  return true;
}
static_assert(are_in_order());

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

// Calls that a worker is woken for.
bool needs_device(RouteId id) {
  switch (id) {
    case RouteId::Embeddings:
    case RouteId::Rerank:
    case RouteId::BareEmbeddings:
    case RouteId::BareRerank:
    case RouteId::Score:
    case RouteId::BareScore:
    case RouteId::TeiRoot:
    case RouteId::TeiEmbed:
    case RouteId::TeiSimilarity:
    case RouteId::OllamaEmbed:
    case RouteId::OllamaEmbeddings:
    case RouteId::CohereEmbed:
    case RouteId::CohereRerank:
    case RouteId::Search:
      return true;
    default:
      return false;
  }
}

bool takes(const Route& route, std::string_view method) {
  return route.method == method || (method == "HEAD" && route.method == "GET");
}

std::optional<std::string> nearest_route(std::string_view path) {
  constexpr std::size_t kPathMost = 200;  // a longer one is nobody's slip of a key
  std::vector<std::string> patterns;
  for (const Route& route : kRoutes) patterns.emplace_back(route.pattern);
  return nearest_name(path.substr(0, kPathMost), patterns);
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

bool begins_compute_call(std::string_view bytes) {
  constexpr std::string_view kPost = "POST ";
  if (!bytes.starts_with(kPost)) return false;
  bytes.remove_prefix(kPost.size());
  const std::string_view path = bytes.substr(0, bytes.find(' '));
  if (path.size() == bytes.size()) return false;  // the line has not come to the path's end
  return std::any_of(kRoutes.begin(), kRoutes.end(), [&](const Route& route) {
    return route.pattern == path && route.method == "POST" && needs_device(route.id);
  });
}

ErrorForm error_form_of(std::string_view path) {
  for (const Route& route : kRoutes) {
    if (route.pattern == path) return route.errors;
  }
  return ErrorForm::OpenAi;
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
  if (miss.allow.empty()) miss.nearest = nearest_route(path);
  return miss;
}

}  // namespace muster
