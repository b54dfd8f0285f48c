// A name that the table of families lacks ends the program, so no metric goes undocumented. The
// format wants the lines of a family together, hence the loops go over devices inside a family and
// not the other way round. Buckets of a histogram are cumulative in the text but single counts in
// memory, so that counting is one increment.

#include "server/service_metrics.h"

#include <fmt/format.h>

#include "metrics/metric_text.h"

namespace muster {
namespace {

// Families are begun by name, so that none is written that the table lacks.
void begin(MetricText& text, std::string_view name) {
  for (const ComputedFamily& family : service_families()) {
    if (family.name == name) return text.begin_family(family);
  }
  MUSTER_CHECK(false);
}

std::string label(std::string_view name, std::string_view value) {
  std::string labels;
  append_label(labels, name, value);
  return labels;
}

double number(std::uint64_t count) { return static_cast<double>(count); }

void add_one(MetricText& text, std::string_view name, double value) {
  begin(text, name);
  text.add("", "", value);
}

// counts: one more than bounds; the last one is of all above.
template <typename Counts>
void add_histogram(MetricText& text, const std::string& labels, const Counts& counts, double sum) {
  const std::string comma = labels.empty() ? "" : labels + ",";
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < ServiceStatus::kBounds.size(); ++i) {
    below += counts[i];
    text.add_part("_bucket", fmt::format(R"({}le="{}")", comma, ServiceStatus::kBounds[i]),
                  number(below));
  }
  below += counts.back();
  text.add_part("_bucket", comma + R"(le="+Inf")", number(below));
  text.add_part("_sum", labels, sum);
  text.add_part("_count", labels, number(below));
}

std::string route_labels(const Route& route) {
  std::string labels = label("route", route.pattern);
  append_label(labels, "method", route.method);
  return labels;
}

void add_http(MetricText& text, const ServiceFacts& facts) {
  begin(text, "http_requests_total");
  for (const Route& route : routes()) {
    for (const auto& [status, count] : facts.http->of(route).statuses) {
      text.add(route_labels(route), label("status", std::to_string(status)), number(count));
    }
  }
  begin(text, "http_request_duration_seconds");
  for (const Route& route : routes()) {
    const auto& of_route = facts.http->of(route);
    if (of_route.statuses.empty()) continue;
    add_histogram(text, route_labels(route), of_route.counts, of_route.seconds);
  }
  begin(text, "http_stray_requests_total");
  for (const auto& [status, count] : facts.http->strays()) {
    text.add("", label("status", std::to_string(status)), number(count));
  }
  const HttpServerCounters& counters = facts.connections;
  add_one(text, "http_connections", number(facts.connection_count));
  add_one(text, "http_connections_total", number(counters.accepted));
  begin(text, "http_connection_ends_total");
  text.add("", label("reason", "too_many"), number(counters.refused_connections));
  text.add("", label("reason", "slow_request"), number(counters.slow_requests));
  text.add("", label("reason", "slow_reader"), number(counters.slow_readers));
  text.add("", label("reason", "idle"), number(counters.idle_closed));
  text.add("", label("reason", "evicted"), number(counters.idle_evicted));
  text.add("", label("reason", "client_gone"), number(counters.clients_gone));
  add_one(text, "http_memory_bytes", number(facts.memory_held));
  add_one(text, "http_memory_limit_bytes", number(facts.memory_most));
  add_one(text, "http_memory_refusals_total", number(counters.memory_refusals));
  add_one(text, "http_memory_evictions_total", number(counters.memory_evictions));
}

void add_audit(MetricText& text, const std::optional<AuditStatus>& audit) {
  if (!audit) return;
  begin(text, "audit_lines_total");
  text.add("", label("outcome", "written"), number(audit->written_count));
  text.add("", label("outcome", "lost"), number(audit->dropped_count));
  add_one(text, "audit_failing", audit->last_error ? 1 : 0);
}

void add_calls(MetricText& text, const ServiceFacts& facts) {
  const ServiceStatus& service = facts.service;
  add_one(text, "calls_total", number(service.request_count));
  begin(text, "calls_refused_total");
  text.add("", label("reason", "queue"), number(service.refused_count));
  text.add("", label("reason", "limit"), number(service.limited_count));
  begin(text, "calls_ended_total");
  text.add("", label("reason", "failed"), number(service.failed_count));
  text.add("", label("reason", "cancelled"), number(service.cancelled_count));
  text.add("", label("reason", "expired"), number(service.expired_count));
  begin(text, "call_duration_seconds");
  add_histogram(text, "", service.latency_counts, service.latency_seconds);
  add_one(text, "calls_waiting", number(service.waiting_call_count));
  add_one(text, "texts_total", number(service.text_count));
  add_one(text, "tokens_total", number(service.token_count));
  add_one(text, "texts_shared_total", number(service.shared_count));
  add_one(text, "queue_texts", number(facts.queued_texts));
  add_one(text, "queue_tokens", number(facts.queued_tokens));
  if (facts.predicted_drain) {
    add_one(text, "queue_drain_seconds", seconds(*facts.predicted_drain));
  }
}

void add_cache(MetricText& text, const CacheStatus& cache) {
  begin(text, "cache_lookups_total");
  text.add("", label("result", "hit"), number(cache.hit_count));
  text.add("", label("result", "miss"), number(cache.miss_count));
  begin(text, "cache_removals_total");
  text.add("", label("reason", "evicted"), number(cache.evicted_count));
  text.add("", label("reason", "expired"), number(cache.expired_count));
  text.add("", label("reason", "damaged"), number(cache.damaged_count));
  add_one(text, "cache_entries", number(cache.entry_count));
  add_one(text, "cache_size_bytes", number(cache.size));
  if (cache.has_file) {
    add_one(text, "cache_file_ok", cache.is_file_behind ? 0 : 1);
    add_one(text, "cache_file_failures_total", number(cache.file_failure_count));
  }
}

void add_searches(MetricText& text, const std::optional<CorpusSearchStatus>& searches) {
  if (!searches) return;
  add_one(text, "searches_total", number(searches->search_count));
  add_one(text, "searches_refused_total", number(searches->refused_count));
  add_one(text, "search_seconds_total", searches->search_seconds);
  add_one(text, "search_backlog_seconds", searches->backlog_seconds);
}

void add_generation(MetricText& text, const GenerationStatus& generation) {
  add_one(text, "generation_requests_total", number(generation.request_count));
  begin(text, "generation_refused_total");
  text.add("", label("reason", "queue"), number(generation.refused_count));
  text.add("", label("reason", "limit"), number(generation.limited_count));
  begin(text, "generation_ended_total");
  text.add("", label("reason", "stop"), number(generation.stop_count));
  text.add("", label("reason", "length"), number(generation.length_count));
  text.add("", label("reason", "invalid"), number(generation.invalid_count));
  text.add("", label("reason", "failed"), number(generation.failed_count));
  text.add("", label("reason", "cancelled"), number(generation.cancelled_count));
  text.add("", label("reason", "expired"), number(generation.expired_count));
  add_one(text, "generation_running", number(generation.running_count));
  add_one(text, "generation_waiting", number(generation.waiting_count));
  add_one(text, "generation_prompt_tokens_total", number(generation.prompt_token_count));
  add_one(text, "generation_tokens_total", number(generation.reply_token_count));
  add_one(text, "prefix_cache_queries_total", number(generation.prefix_query_token_count));
  add_one(text, "prefix_cache_hits_total", number(generation.prefix_hit_token_count));
  const auto add = [&](std::string_view name, const SecondsHistogram& times) {
    begin(text, name);
    add_histogram(text, "", times.counts, times.sum);
  };
  add("generation_first_token_seconds", generation.first_token);
  add("generation_token_seconds", generation.token_gap);
  add("generation_duration_seconds", generation.duration);
}

// A family that counts for each model, of those that embed or of those that generate.
template <typename Model>
void add_counts(MetricText& text, std::string_view name, const std::vector<Model>& models,
                std::uint64_t Model::*count) {
  begin(text, name);
  for (const auto& model : models) {
    text.add(label("model", model.name), "", number(model.*count));
  }
}

void add_decoders(MetricText& text, const std::vector<ServedDecoderStatus>& decoders) {
  using Decoder = ServedDecoderStatus;
  add_counts(text, "generation_model_requests_total", decoders, &Decoder::request_count);
  add_counts(text, "generation_model_prompt_tokens_total", decoders, &Decoder::prompt_token_count);
  add_counts(text, "generation_model_tokens_total", decoders, &Decoder::reply_token_count);
  const auto add_worker = [&](std::string_view name, auto value_of) {
    begin(text, name);
    for (const auto& decoder : decoders) {
      for (const auto& worker : decoder.devices) {
        auto labels = label("model", decoder.name);
        append_label(labels, "device", worker.name);
        const auto [more, value] = value_of(worker);
        text.add(labels, more, value);
      }
    }
  };
  using Worker = ServedDecoderStatus::Device;
  add_worker("generation_worker_state", [](const Worker& worker) {
    return std::pair(label("state", group_state_name(worker.state)), 1.0);
  });
  add_worker("generation_worker_running", [](const Worker& worker) {
    return std::pair(std::string(), number(worker.running_count));
  });
  add_worker("generation_worker_restarts_total", [](const Worker& worker) {
    return std::pair(std::string(), number(worker.restart_count));
  });
  add_worker("generation_worker_kv_cache_usage_ratio",
             [](const Worker& worker) { return std::pair(std::string(), worker.cache_use); });
  add_worker("generation_worker_preemptions_total", [](const Worker& worker) {
    return std::pair(std::string(), number(worker.preemption_count));
  });
  add_worker("generation_worker_draft_tokens_total", [](const Worker& worker) {
    return std::pair(std::string(), number(worker.drafted_count));
  });
  add_worker("generation_worker_accepted_tokens_total", [](const Worker& worker) {
    return std::pair(std::string(), number(worker.accepted_count));
  });
}

// Only the state that a model is in has a line. A state that was left vanishes from the scrape
// instead of staying at 1.
void add_models(MetricText& text, const std::vector<ServedModelStatus>& models,
                const std::vector<ServedDecoderStatus>& decoders) {
  begin(text, "model_state");
  const auto add_state = [&](const auto& model) {
    text.add(label("model", model.name), label("state", model_state_name(model.state)), 1);
  };
  for (const auto& model : models) add_state(model);
  for (const auto& decoder : decoders) add_state(decoder);
  add_counts(text, "model_calls_total", models, &ServedModelStatus::request_count);
  add_counts(text, "model_texts_total", models, &ServedModelStatus::text_count);
  add_counts(text, "model_tokens_total", models, &ServedModelStatus::token_count);
}

// One that waits for memory takes no work, whatever else there is of it.
void add_device_models(MetricText& text, const std::vector<GroupStatus>& devices,
                       const std::vector<ServedModelStatus>& models) {
  begin(text, "device_model_state");
  for (const auto& device : devices) {
    for (const auto& model : models) {
      const auto here = device.models.find(model.id);
      if (here == device.models.end()) continue;
      const auto& status = here->second;
      const auto state = status.waits_for_memory ? ModelState::Failed : status.state;
      auto labels = label("model", model.name);
      append_label(labels, "device", device.name);
      text.add(labels, label("state", model_state_name(state)), 1);
    }
  }
}

void add_devices(MetricText& text, const std::vector<GroupStatus>& devices,
                 const std::vector<ServedModelStatus>& models) {
  begin(text, "device_state");
  for (const auto& device : devices) {
    text.add(label("device", device.name), label("state", group_state_name(device.state)), 1);
  }
  add_device_models(text, devices, models);
  const auto add = [&](std::string_view name, auto value_of) {
    begin(text, name);
    for (const auto& device : devices) {
      const std::optional<double> value = value_of(device);
      if (value) text.add(label("device", device.name), "", *value);
    }
  };
  using Device = GroupStatus;
  const auto count = [](std::uint64_t Device::*member) {
    return [member](const Device& device) { return std::optional(number(device.*member)); };
  };
  add("device_batches_total", count(&Device::batch_count));
  add("device_failed_batches_total", count(&Device::failed_batch_count));
  add("device_texts_total", count(&Device::text_count));
  add("device_tokens_total", count(&Device::token_count));
  add("device_engine_seconds_total",
      [](const Device& device) { return std::optional(device.engine_seconds); });
  add("device_in_flight_texts", count(&Device::in_flight_texts));
  add("device_in_flight_tokens", count(&Device::in_flight_tokens));
  add("device_batch_tokens_limit", count(&Device::token_budget));
  add("device_tokens_per_second", [](const Device& device) { return device.tokens_per_second; });
  add("device_restarts_total",
      [](const Device& device) { return std::optional<double>(device.restart_count); });
  add("device_quarantines_total",
      [](const Device& device) { return std::optional<double>(device.quarantine_count); });
  add("device_canary_seconds", [](const Device& device) {
    return device.last_canary ? device.last_canary->seconds : std::nullopt;
  });
}

}  // namespace

std::string service_metrics_text(const ServiceFacts& facts) {
  MetricText text("muster_");
  add_one(text, "start_time_seconds", facts.start_unix_seconds);
  add_one(text, "ready", facts.is_ready ? 1 : 0);
  add_http(text, facts);
  add_audit(text, facts.audit);
  add_calls(text, facts);
  add_cache(text, facts.service.cache);
  add_searches(text, facts.searches);
  add_generation(text, facts.generation);
  add_decoders(text, facts.decoders);
  if (facts.log_lost_count) {
    add_one(text, "log_lost_lines_total", number(*facts.log_lost_count));
  }
  add_models(text, facts.models, facts.decoders);
  add_devices(text, facts.devices, facts.models);
  return text.take();
}

}  // namespace muster
