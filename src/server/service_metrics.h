#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coordinator/fleet.h"
#include "metrics/families.h"
#include "net/http_server.h"
#include "server/audit_log.h"
#include "server/http_statistics.h"
#include "serving/corpus_searches.h"
#include "serving/generation_call.h"
#include "serving/inference_service.h"

namespace muster {

/// What /metrics tells of the service, at one moment.
struct ServiceFacts {
  double start_unix_seconds = 0;
  bool is_ready = false;
  ServiceStatus service = {};
  std::vector<ServedModelStatus> models = {};
  std::vector<ServedDecoderStatus> decoders = {};
  std::vector<GroupStatus> devices = {};
  std::uint64_t queued_texts = 0;
  std::uint64_t queued_tokens = 0;
  std::optional<Duration> predicted_drain = {};
  const HttpStatistics* http = nullptr;  // never nullptr when it is written
  std::size_t connection_count = 0;
  HttpServerCounters connections = {};
  std::optional<std::uint64_t> log_lost_count = {};  // nullopt: there is no log
  std::uint64_t memory_held = 0;
  std::uint64_t memory_most = 0;
  std::optional<AuditStatus> audit = {};            // nullopt: none is kept
  std::optional<CorpusSearchStatus> searches = {};  // nullopt: there is nothing to search
  GenerationStatus generation = {};
};

/// Every family that `service_metrics_text` writes, for docs/server-metrics.md.
std::span<const ComputedFamily> service_families();

/// The text that Prometheus scrapes. A family without a value has no line.
///
/// Threads: pure. Source: Prometheus, text exposition format 0.0.4.
std::string service_metrics_text(const ServiceFacts& facts);

}  // namespace muster
