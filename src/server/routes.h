#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "server/error_form.h"

namespace muster {

/// Who may call a route.
enum class RouteScope : std::uint8_t {
  Open,   // everybody: what probes and clients ask before they have a key
  Embed,  // with a keys file: a key with that scope
  Read,   // with a keys file: a key with that scope
  Admin,  // a key with that scope; without a keys file, programs of this machine
};

enum class RouteId : std::uint8_t {
  Embeddings,
  Rerank,
  Tokenize,
  Models,
  Model,
  LoadModel,
  UnloadModel,
  Livez,
  Readyz,
  Health,
  Metrics,
  Devices,
  Decisions,
  ShowConfig,
  OpenApi,
  GpuStats,
  FleetHealth,
  FleetConfig,
  ChangeConfig,
  FleetStats,
  OneGpuStats,
  TestGpus,
  Recommendations,
  Resources,
  ManageResources,
  Performance,
  Drain,
  Resume,
  Restart,
  OpenApiJson,
  BareEmbeddings,
  BareRerank,
  BareModels,
  Score,
  BareScore,
  TeiRoot,
  TeiEmbed,
  TeiSimilarity,
  TeiTokenize,
  TeiDecode,
  TeiInfo,
  OllamaEmbed,
  OllamaEmbeddings,
  OllamaTags,
  OllamaShow,
  OllamaVersion,
  CohereEmbed,
  CohereRerank,
  Search,
};
inline constexpr std::size_t kRouteCount = static_cast<std::size_t>(RouteId::Search) + 1;

struct Route {
  RouteId id = RouteId::Livez;
  std::string_view method;   // GET stands for HEAD too
  std::string_view pattern;  // "/multigpu/gpu/{id}/stats"; {name} at the end may hold slashes
  RouteScope scope = RouteScope::Read;
  ErrorForm errors = ErrorForm::OpenAi;
};

/// Every route, in the order of RouteId. Those below /multigpu answer below /api/v1/multigpu too.
std::span<const Route> routes();

/// Whether a request that begins so is for vectors or scores; by the request line alone.
bool begins_compute_call(std::string_view bytes);

/// How the errors of a path are written, whatever the method; OpenAI's form for an unknown path.
ErrorForm error_form_of(std::string_view path);

struct RouteMatch {
  const Route* route = nullptr;
  std::string parameter;  // what stands for {…}, percent-decoded
};

struct RouteMiss {
  std::string allow;                   // "GET, HEAD": the path is there, the method is not
  std::optional<std::string> nearest;  // else a route that was perhaps meant
};

/// Threads: pure.
std::variant<RouteMatch, RouteMiss> find_route(std::string_view method, std::string_view path);

/// `%41` becomes `A`; nullopt for a broken escape or a NUL.
/// Source: RFC 3986 section 2.1.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace muster
