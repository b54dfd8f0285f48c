#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cache/vector_cache.h"
#include "jobs/model_opening.h"
#include "jobs/precision_choice.h"
#include "scheduler/token_estimate.h"
#include "serving/model_roster.h"
#include "serving/serve_options.h"
#include "spec/device.h"
#include "spec/serving.h"

namespace muster {

/// A model of a running server, as its calls need it.
struct ServingModel {
  ModelId id = 0;
  std::string name;
  ModelRoster::Ticket ticket = {};
  ServedModel asked;
  OpenedModel opened;
  ModelTask task = ModelTask::Embed;
  std::uint32_t row_size = 0;  // values of a row: the dimension, or the labels
  PrecisionChoice precision;
  /// Hash and precision: with the class of the engine that computed it, what a vector depends on.
  std::string equality_base;
  /// Of the devices that have had the model, without repeats. The first one's are cached under the
  /// key of a text, those of another under a key of their own.
  std::vector<std::string> engine_classes;
  double created_unix_seconds = 0;
  bool is_leaving = false;  // taken away as soon as its last call is answered
  std::uint64_t request_count = 0, text_count = 0, token_count = 0;

  /// Told by the first encoding of a long text.
  std::shared_ptr<TextEncoder> aside_encoder;
  TokenEstimate token_estimate;

  /// As clients are told it: all of its vectors are equal bit for bit while this has one engine.
  std::string equality_class() const;

  /// What belongs to the key of every text after this prompt, cut at this side, on a device of the
  /// first engine class.
  const CacheKey& scope(const std::string& prompt, bool is_cut_left);

  /// The key of the same text as computed by another engine class.
  static CacheKey key_of_class(const CacheKey& key, std::string_view engine_class);

  /// The name of its canary rows: what they depend on, hashed.
  std::string canary_name() const;

 private:
  std::map<std::pair<std::string, bool>, CacheKey> scopes_;
};

/// Which settings a model names itself; naming `auto` is naming one.
struct NamedSettings {
  bool has_precision = false;
  bool has_kv_cache_dtype = false;
};

/// Gives `model` the server's settings in place of those that it does not name: the numbers of a
/// cache only where it generates, since others have no cache. Threads: pure.
void take_defaults(ServedModel& model, const ModelDefaults& defaults, const NamedSettings& named,
                   bool generates);

/// What the settings of a model that embeds or ranks ask for and its devices, some of a server's,
/// do not have.
///
/// Errors: InvalidArgument (numbers of a cache), Unsupported (own; int8 on a GPU). Threads: pure.
Status check_encoder_settings(const ServedModel& asked, const std::vector<Device>& devices);

/// The models that are served, by name and number.
///
/// Threads: owned by one loop.
class ServingModels {
 public:
  ServingModel& add(std::unique_ptr<ServingModel> model);

  /// nullptr when there is none. Valid until it is removed.
  ServingModel* find(ModelId id) const;

  /// The served model of a name; the first one of the task for the empty name.
  ///
  /// Errors: NotFound, with the nearest name; InvalidArgument for a model of another task.
  Result<ServingModel*> find(std::string_view name, ModelTask task) const;

  /// The served model of a name, whatever its task; for the empty name the first one that embeds,
  /// else the first one that reranks.
  ///
  /// Errors: NotFound, with the nearest name.
  Result<ServingModel*> find_any(std::string_view name) const;

  void remove(ModelId id);

  const std::vector<std::unique_ptr<ServingModel>>& all() const { return models_; }

 private:
  std::vector<std::unique_ptr<ServingModel>> models_;  // in the order they came
};

}  // namespace muster
