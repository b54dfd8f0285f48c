// Settings as what a server is started with. They fall into three sets that contain each other:
// what a request may change, what a reload may change besides (keys, certificates), and what only a
// start sets. Each set has one function, and the start calls them all, so that a setting is read in
// the same way whenever it is read.

#include "cli/serve_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "cli/decoder_flags.h"
#include "cli/device_choice.h"
#include "cli/embed_options.h"
#include "cli/find_machine.h"
#include "cli/lost_gpus.h"
#include "cli/machine_choice.h"
#include "cli/places.h"
#include "cli/plan_devices.h"
#include "cli/serve_doors.h"
#include "hw/device_names.h"
#include "jobs/decoder_source.h"
#include "modelfile/model_folder.h"
#include "scheduler/placement_expression.h"
#include "serving/serving_models.h"
#include "spec/generation.h"
#include "spec/pooling.h"

namespace muster {
namespace {

// Values that have a default.
std::uint32_t count(const Config& config, SettingId id) {
  const auto value = config.count(id);
  MUSTER_CHECK(value);
  return *value;
}

Duration time(const Config& config, SettingId id) {
  const auto value = config.time(id);
  MUSTER_CHECK(value);
  return *value;
}

std::uint64_t bytes(const Config& config, SettingId id) {
  const auto value = config.bytes(id);
  MUSTER_CHECK(value);
  return *value;
}

Result<std::size_t> device_index(const Config& config, SettingId id, const std::string& name,
                                 const std::vector<Device>& devices) {
  std::vector<std::string> names;
  for (const auto& device : devices) names.push_back(device.name());
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  return invalid_setting(
      config, id,
      fmt::format("{} is none of the server's devices: {}", name, fmt::join(names, ", ")));
}

// A word of the command line: a file of that name, "NAME=MODEL" or a model.
// A file whose name holds an equals sign is still a file.
ModelEntry entry_of(const std::string& word) {
  const auto equals = word.find('=');
  std::error_code ignored;
  const bool is_named =
      equals != std::string::npos && equals > 0 && !std::filesystem::exists(word, ignored);
  if (!is_named) return {.name = "", .model = word};
  return {.name = word.substr(0, equals), .model = word.substr(equals + 1)};
}

// Of the words of the settings, which their own checks have passed; empty: not named.
ModelDefaults bits_of(const std::string& precision, const std::string& kv_cache_dtype) {
  return {.precision = parse_precision(precision),
          .wants_own_bits = precision == decoder_precision_name(DecoderPrecision::Own),
          .kv_cache_dtype = parse_kv_cache_dtype(kv_cache_dtype).value_or(KvCacheDtype::Auto)};
}

// What an entry says of its own model goes before the setting for all.
ServedModel served_model(const Config& config, const ModelEntry& entry) {
  const auto or_all = [&config](const std::optional<std::string>& of_entry, SettingId id) {
    return of_entry ? of_entry : config.text(id);
  };
  ServedModel model;
  model.name = entry.name;
  model.model = entry.model;
  const auto own = bits_of(entry.precision.value_or(""), entry.kv_cache_dtype.value_or(""));
  model.precision = own.precision;
  model.wants_own_bits = own.wants_own_bits;
  model.kv_cache_dtype = own.kv_cache_dtype;
  take_defaults(model, model_defaults(config),
                {.has_precision = entry.precision.has_value(),
                 .has_kv_cache_dtype = entry.kv_cache_dtype.has_value()},
                names_decoder(entry.model));
  model.pooling = parse_pooling(or_all(entry.pooling, SettingId::Pooling).value_or(""));
  if (const auto normalize = or_all(entry.normalize, SettingId::Normalize)) {
    model.normalize = *normalize == "true";
  }
  model.length_max = config.count(SettingId::MaxLength);
  if (entry.max_length) {
    std::uint32_t most = 0;
    std::from_chars(entry.max_length->data(), entry.max_length->data() + entry.max_length->size(),
                    most);
    model.length_max = most;
  }
  model.prompt_name = or_all(entry.prompt_name, SettingId::PromptName);
  model.devices = entry.devices;
  return model;
}

// Words of the command line add to the models of the file; one that is in both is served once.
Result<std::vector<ServedModel>> served_models(const CommandContext& context) {
  auto entries = context.config.models(SettingId::Models);
  for (const auto& word : context.arguments.positionals) {
    auto entry = entry_of(word);
    if (std::find(entries.begin(), entries.end(), entry) == entries.end()) {
      entries.push_back(std::move(entry));
    }
  }
  if (entries.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 "which model? Name a folder or a hub id: muster serve MODEL, or models in "
                 "muster.yaml"};
  }
  MUSTER_TRY(check_model_entries(entries, "models"));
  std::vector<ServedModel> models;
  for (const auto& entry : entries) {
    // Looked for now, so that a wrong name ends the start before any device is asked.
    if (names_decoder(entry.model)) {
      MUSTER_TRY(find_decoder_source(entry.model));
    } else {
      MUSTER_TRY(find_model(entry.model));
    }
    models.push_back(served_model(context.config, entry));
  }
  return models;
}

Status check_model_devices(const Config& config, const ServeOptions& options) {
  auto models = options.models;
  models.insert(models.end(), options.decoders.begin(), options.decoders.end());
  for (const auto& model : models) {
    for (const auto& name : model.devices) {
      MUSTER_TRY(device_index(config, SettingId::Models, name, options.devices));
    }
  }
  for (const auto& model : options.models) {
    MUSTER_TRY(check_encoder_settings(model, options.devices));
  }
  return Done{};
}

// The devices of a plan are for the one model that it is of.
Result<std::string> device_names(const CommandContext& context, const ServeOptions& options) {
  const bool has_plan = context.arguments.has("--plan");
  const auto count = options.models.size() + options.decoders.size();
  if (has_plan && count > 1) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("--plan is of one model, and {} are to be served", count)};
  }
  const auto& models = options.models.empty() ? options.decoders : options.models;
  return devices_of_plan(context, models.front().model);
}

Status set_machine(const CommandContext& context, ServeOptions& options) {
  const auto& config = context.config;
  const auto names = MUSTER_TRY(device_names(context, options));
  auto found = MUSTER_TRY(find_machine(config, context.clock, may_name_gpus(names)));
  options.devices = MUSTER_TRY(chosen_devices(config, names, found.inventory));
  options.lost_gpus = lost_gpus_notice(names, found.inventory, options.devices,
                                       config.count(SettingId::DeviceCountMost))
                          .value_or("");
  options.machine = machine_of(std::move(found), options.devices, "here");
  options.worker_program = MUSTER_TRY(find_worker_program(config)).path;
  options.cache_folder = MUSTER_TRY(find_cache_folder(config)).path;
  options.torch_root = MUSTER_TRY(find_torch_root(config)).path;
  return Done{};
}

Status set_weights(const Config& config, ServeOptions& options) {
  for (const auto& [name, text] : config.map(SettingId::DeviceWeights)) {
    const auto index =
        MUSTER_TRY(device_index(config, SettingId::DeviceWeights, name, options.devices));
    double weight = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), weight);
    constexpr double kWeightMost = 1e6;
    if (code != std::errc{} || end != text.data() + text.size() ||
        !(weight > 0 && weight <= kWeightMost)) {
      return invalid_setting(
          config, SettingId::DeviceWeights,
          fmt::format("the weight of {} must be a number above 0: \"{}\"", name, text));
    }
    options.weights[index] = weight;
  }
  return Done{};
}

// A cache that is off has no room, so that the rest of the program needs no second switch.
CacheOptions cache_options(const Config& config) {
  CacheOptions cache;
  const bool is_on = config.is_on(SettingId::CacheEnabled).value_or(true);
  cache.size_most = is_on ? bytes(config, SettingId::CacheSize) : 0;
  cache.entries_most = count(config, SettingId::CacheEntries);
  const auto ttl = config.time(SettingId::CacheTtl);
  if (ttl && *ttl > Duration::zero()) cache.ttl = ttl;
  if (is_on) cache.file = config.text(SettingId::CacheFile).value_or("");
  return cache;
}

Result<std::array<std::vector<std::size_t>, kRequestTypeCount>> pools(
    const Config& config, const std::vector<Device>& devices) {
  std::array<std::vector<std::size_t>, kRequestTypeCount> all;
  std::vector<std::string> types;
  for (std::size_t i = 0; i < kRequestTypeCount; ++i) {
    types.emplace_back(request_type_name(static_cast<RequestType>(i)));
  }
  for (const auto& [type, names] : config.map(SettingId::TaskTypes)) {
    const auto found = std::find(types.begin(), types.end(), type);
    if (found == types.end()) {
      const auto nearest = nearest_name(type, types);
      return invalid_setting(
          config, SettingId::TaskTypes,
          fmt::format("no type of requests: {}; {}", type,
                      nearest ? fmt::format("did you mean {}?", *nearest)
                              : fmt::format("they are {}", fmt::join(types, ", "))));
    }
    auto& pool = all.at(static_cast<std::size_t>(found - types.begin()));
    for (const auto& name : split(names, ',')) {
      pool.push_back(
          MUSTER_TRY(device_index(config, SettingId::TaskTypes, std::string(trim(name)), devices)));
    }
  }
  return all;
}

LogOptions log_options(const Config& config) {
  LogOptions log;
  if (config.text(SettingId::LogFormat) == "json") log.format = LogFormat::Json;
  log.folder = config.text(SettingId::LogDir).value_or("");
  return log;
}

// The setting's own check has refused all other words, so what is left is the expression.
Strategy strategy_of(const Config& config) {
  const auto name = config.text(SettingId::LoadBalancingStrategy).value_or("auto");
  for (const auto strategy :
       {Strategy::Auto, Strategy::LeastWork, Strategy::RoundRobin, Strategy::MemoryUsage,
        Strategy::ComputeLoad, Strategy::TaskType, Strategy::StaticPartition}) {
    if (name == strategy_name(strategy)) return strategy;
  }
  return Strategy::Expression;
}

Result<DispatchOptions> dispatch_options(const Config& config, const std::vector<Device>& devices) {
  DispatchOptions dispatch;
  dispatch.strategy = strategy_of(config);
  dispatch.memory_threshold =
      config.fraction(SettingId::MemoryThreshold).value_or(dispatch.memory_threshold);
  dispatch.pools = MUSTER_TRY(pools(config, devices));
  dispatch.batch_time_most = time(config, SettingId::BatchTime);
  if (const auto text = config.text(SettingId::PlacementExpression)) {
    auto expression = PlacementExpression::parse(*text);
    if (!expression) {
      return invalid_setting(config, SettingId::PlacementExpression, expression.error().message);
    }
    dispatch.expression = std::move(*expression);
  }
  if (dispatch.strategy == Strategy::Expression && dispatch.expression == nullptr) {
    return invalid_setting(config, SettingId::LoadBalancingStrategy,
                           "expression needs the setting placement_expression");
  }
  if (dispatch.strategy == Strategy::TaskType && !config.text(SettingId::TaskTypes)) {
    return invalid_setting(config, SettingId::LoadBalancingStrategy,
                           "task_type needs the setting task_types");
  }
  return dispatch;
}

// The default of a request must be one that a request could ask for.
Status set_deadlines(const Config& config, ServeOptions& options) {
  options.deadline = time(config, SettingId::RequestTimeout);
  options.deadline_most = time(config, SettingId::RequestTimeoutMost);
  if (options.deadline > options.deadline_most) {
    return invalid_setting(config, SettingId::RequestTimeout,
                           fmt::format("it must not be above request_timeout_most: {} and {}",
                                       *config.text(SettingId::RequestTimeout),
                                       *config.text(SettingId::RequestTimeoutMost)));
  }
  options.drain_limit = time(config, SettingId::DrainTimeout);
  options.canary_limit = time(config, SettingId::CanaryTimeout);
  return Done{};
}

}  // namespace

std::vector<FlagGroup> serve_flag_groups() {
  using enum SettingId;
  return {
      {"Clients",
       {Listen, UnixSocket, UnixSocketMode, TlsCert, TlsKey, TlsClientCa, KeysFile, ApiKey,
        AuditLog, MaxBodyBytes, ConnectionsMost, MemoryMost, MaxClientBatchSize, AutoTruncate,
        RequestTimeout, RequestTimeoutMost, DrainTimeout}},
      {"Models",
       {Models, Search, ModelsMost, Precision, MaxLength, Pooling, Normalize, PromptName}},
      {"Machine",
       {Devices, DeviceCountMost, CoresPerDevice, BatchTokens, TorchRoot, WorkerProgram, CacheDir,
        NvmlPath, SysfsRoot},
       {{"--plan", "FILE", "on the devices of a plan that `muster plan` wrote"}}},
      {"Which device gets what",
       {LoadBalancingStrategy, MemoryThreshold, DeviceWeights, TaskTypes,
        SettingId::PlacementExpression, QueueBudget, QueuedTokensMost, QueuedTextsMost,
        QueuedRepliesMost, MaxNumSeqs, BatchTime, LowLatency, CanaryInterval, CanaryTimeout}},
      {"What is kept and written down",
       {CacheEnabled, CacheSize, CacheEntries, CacheTtl, CacheFile, CacheScope, PrefixCache,
        SpeculativeTokens, SettingId::KvCacheDtype, KvCacheSize, LogLevel, LogFormat, LogDir,
        StatsFile, StatsInterval}},
  };
}

ModelDefaults model_defaults(const Config& config) {
  return bits_of(config.text(SettingId::Precision).value_or(""),
                 config.text(SettingId::KvCacheDtype).value_or(""));
}

Status apply_request_settings(const Config& config, ServeOptions& options) {
  options.dispatch = MUSTER_TRY(dispatch_options(config, options.devices));
  options.admission.queue_budget = time(config, SettingId::QueueBudget);
  options.admission.queued_tokens_most = count(config, SettingId::QueuedTokensMost);
  options.admission.queued_texts_most = count(config, SettingId::QueuedTextsMost);
  options.replies_waiting_most = count(config, SettingId::QueuedRepliesMost);
  options.texts_most = count(config, SettingId::MaxClientBatchSize);
  options.auto_truncate = config.is_on(SettingId::AutoTruncate).value_or(true);
  MUSTER_TRY(set_deadlines(config, options));
  options.log.level =
      parse_log_level(config.text(SettingId::LogLevel).value_or("")).value_or(LogLevel::Info);
  return Done{};
}

Status apply_live_settings(const Config& config, ServeOptions& options) {
  MUSTER_TRY(apply_request_settings(config, options));
  MUSTER_TRY(set_tls(config, options.http));
  return set_keys(config, options);
}

Result<ServeOptions> serve_options(const CommandContext& context) {
  const auto& config = context.config;
  ServeOptions options;
  MUSTER_TRY(set_listening(config, options.http));
  auto models = MUSTER_TRY(served_models(context));
  for (auto& model : models) {
    (names_decoder(model.model) ? options.decoders : options.models).push_back(std::move(model));
  }
  options.defaults = model_defaults(config);
  for (const auto& [name, path] : config.files(SettingId::Search)) {
    options.searches.push_back({.name = name, .out = path});
  }
  options.batch_tokens = config.count(SettingId::BatchTokens).value_or(options.batch_tokens);
  options.models_most = count(config, SettingId::ModelsMost);
  options.cache = cache_options(config);
  options.is_cache_shared = config.text(SettingId::CacheScope) == "shared";
  options.has_prefix_cache = config.is_on(SettingId::PrefixCache).value_or(true);
  options.drafted_tokens_most = drafted_tokens_most(config);
  options.replies_at_once = count(config, SettingId::MaxNumSeqs);
  options.kv_cache_bytes = config.bytes(SettingId::KvCacheSize);
  options.log = log_options(config);
  options.is_low_latency = config.is_on(SettingId::LowLatency).value_or(true);
  options.canary_period = time(config, SettingId::CanaryInterval);
  options.audit_file = config.text(SettingId::AuditLog).value_or("");
  options.stats_file = config.text(SettingId::StatsFile).value_or("");
  options.stats_interval = time(config, SettingId::StatsInterval);
  // After the models: a plan's devices depend on how many models there are.
  MUSTER_TRY(set_machine(context, options));
  for (const auto& device : options.devices) options.log.devices.push_back(device.name());
  MUSTER_TRY(check_model_devices(config, options));
  MUSTER_TRY(set_weights(config, options));
  MUSTER_TRY(apply_live_settings(config, options));
  return options;
}

}  // namespace muster
