#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cache/vector_cache.h"
#include "log/log.h"
#include "net/http_server.h"
#include "scheduler/admission.h"
#include "scheduler/dispatcher.h"
#include "spec/device.h"
#include "spec/encoder_spec.h"
#include "spec/generation.h"
#include "spec/machine.h"
#include "spec/precision.h"

namespace muster {

/// One model that a server serves.
struct ServedModel {
  std::string name = {};   // what clients call it; empty: the hub id or the folder's name
  std::string model = {};  // folder or hub id
  std::optional<Precision> precision = {};  // nullopt: auto, or the next one
  bool wants_own_bits = false;              // the file's: of models that generate alone
  /// Of a model that generates.
  KvCacheDtype kv_cache_dtype = KvCacheDtype::Auto;
  std::optional<Pooling> pooling = {};
  std::optional<bool> normalize = {};
  std::optional<std::uint32_t> length_max = {};
  std::optional<std::string> prompt_name = {};  // when a request names none
  std::vector<std::string> devices = {};        // by name; empty: all of the server's
};

/// What a model has that names none of its own, whether it comes at the start or in a load.
struct ModelDefaults {
  std::optional<Precision> precision = {};           // nullopt: auto, or the next one
  bool wants_own_bits = false;                       // as ServedModel::wants_own_bits
  KvCacheDtype kv_cache_dtype = KvCacheDtype::Auto;  // of models that generate alone
};

/// An output of `muster embed` that a server searches.
struct SearchedOutput {
  std::string name = {};  // what clients call it
  std::filesystem::path out = {};
};

/// What a running server does; every field is already checked for form.
struct ServeOptions {
  HttpServerOptions http;  // where to listen, TLS, limits of bodies, headers and connections
  std::vector<ServedModel> models;    // that embed or rerank
  std::vector<ServedModel> decoders;  // that generate
  ModelDefaults defaults;             // of models that are loaded while it runs
  std::vector<SearchedOutput> searches;
  std::uint32_t models_most = 16;  // at a time, those that are being loaded included
  std::vector<Device> devices;
  std::string lost_gpus;  // what is told of GPUs that would be among them; empty: none is lost
  Machine machine;        // these devices as planning sees them, as free as before the workers came
  std::map<std::size_t, double> weights;  // by index into `devices`
  std::filesystem::path worker_program;
  std::filesystem::path torch_root;
  std::filesystem::path cache_folder;  // precision verdicts, canary rows
  std::uint32_t batch_tokens = 4096;
  bool is_low_latency = true;               // as FleetOptions::is_low_latency
  bool has_prefix_cache = true;             // of decoders, as DecoderFleetOptions::has_prefix_cache
  std::uint32_t drafted_tokens_most = 0;    // the same, its drafted_tokens_most
  std::uint32_t replies_at_once = 32;       // of a decoder, by each device
  std::size_t replies_waiting_most = 64;    // of a decoder
  std::size_t prompts_waiting_most = 1024;  // to be tokenised, those of clients that have gone too
  std::optional<std::uint64_t> kv_cache_bytes;  // of a decoder, on each device; nullopt: what fits

  DispatchOptions dispatch;
  AdmissionOptions admission;
  CacheOptions cache;
  bool is_cache_shared = false;  // between API keys; else none learns from a quick answer what
                                 // another has asked, of vectors and of replies

  std::uint32_t texts_most = 2048;  // of one request; OpenAI's limit
  bool auto_truncate = true;        // when a request does not say; false: too long is an error
  Duration deadline = std::chrono::seconds(60);        // of a request that names none
  Duration deadline_most = std::chrono::seconds(600);  // that it may name
  Duration drain_limit = std::chrono::seconds(30);     // of SIGTERM and of `muster ctl drain`
  Duration canary_period = std::chrono::seconds(10);
  Duration canary_limit = std::chrono::seconds(1);  // of GET /health

  // Without both, everybody may do everything but admin from another machine.
  std::filesystem::path keys_file;   // empty: none
  std::string api_key;               // the one key, which may do everything; empty: none
  std::filesystem::path audit_file;  // empty: none
  std::filesystem::path stats_file;  // JSON lines of GPU statistics; empty: none
  Duration stats_interval = std::chrono::seconds(60);
  LogOptions log;
};

}  // namespace muster
