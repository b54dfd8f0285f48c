// Finds the model that a name means and derives the keys of its cache. A key holds all that changes
// a vector: weights and engine class, pooling, normalisation, prompt, length limit and the side
// that is cut. The scope of a prompt is hashed once and kept, so that a text costs one hash. An
// exact name always wins; a short name counts only where one model has it.

#include "serving/serving_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/build_info.h"
#include "base/hash.h"
#include "base/text.h"
#include "spec/pooling.h"

namespace muster {
namespace {

std::string_view task_name(ModelTask task) {
  return task == ModelTask::Embed ? "embeds" : "reranks";
}

// A model is also meant by the words that the server was started with, and by the last part of its
// hub id: `all-MiniLM-L6-v2` for sentence-transformers/all-MiniLM-L6-v2. Never the other way round:
// another organisation's model of that name is another model.
bool is_also_named(const ServingModel& model, std::string_view name) {
  if (name == model.asked.model) return true;
  const auto slash = model.name.rfind('/');
  return slash != std::string::npos && name == std::string_view(model.name).substr(slash + 1);
}

}  // namespace

std::string ServingModel::equality_class() const {
  return fmt::format("{} {}", equality_base, fmt::join(engine_classes, " + "));
}

CacheKey ServingModel::key_of_class(const CacheKey& key, std::string_view engine_class) {
  const std::array<std::string_view, 1> fields{engine_class};
  const std::string_view bytes{reinterpret_cast<const char*>(key.data()), key.size()};
  return cache_key(cache_scope(fields), bytes, /*is_ids=*/false);
}

const CacheKey& ServingModel::scope(const std::string& prompt, bool is_cut_left) {
  const auto [found, is_new] = scopes_.try_emplace({prompt, is_cut_left});
  if (is_new) {
    const auto limit = std::to_string(opened.text_encoder->length_max());
    const auto first_class = equality_base + " " + engine_classes.front();
    const std::array<std::string_view, 6> fields{
        first_class, pooling_name(opened.pooling),  opened.normalize ? "normalized" : "", prompt,
        limit,       is_cut_left ? "left" : "right"};
    found->second = cache_scope(fields);
  }
  return found->second;
}

// Named by all that may change its row, the build included, so rows of an older build are never
// compared.
std::string ServingModel::canary_name() const {
  return hash_hex(fmt::format("{} {} {} {} {}", build_name(), opened.hash,
                              precision_name(precision.precision), pooling_name(opened.pooling),
                              opened.normalize));
}

void take_defaults(ServedModel& model, const ModelDefaults& defaults, const NamedSettings& named,
                   bool generates) {
  if (!named.has_precision) {
    model.precision = defaults.precision;
    model.wants_own_bits = defaults.wants_own_bits;
  }
  if (generates && !named.has_kv_cache_dtype) model.kv_cache_dtype = defaults.kv_cache_dtype;
}

Status check_encoder_settings(const ServedModel& asked, const std::vector<Device>& devices) {
  const auto& name = asked.name.empty() ? asked.model : asked.name;
  if (asked.kv_cache_dtype != KvCacheDtype::Auto) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: a model that does not generate has no kv_cache_dtype", name)};
  }
  if (asked.wants_own_bits) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}: own is for models that generate, and this one is computed in "
                             "fp32, bf16, fp16 or int8",
                             name)};
  }
  if (asked.precision != Precision::Int8) return Done{};
  const auto& names = asked.devices;
  for (const auto& device : devices) {
    const bool is_asked =
        names.empty() || std::find(names.begin(), names.end(), device.name()) != names.end();
    if (!is_asked || !runs_as_gpu(device.kind)) continue;
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}: int8 is computed on CPUs only, and {} is a GPU: use fp32, bf16 "
                             "or fp16, or CPUs alone",
                             name, device.name())};
  }
  return Done{};
}

ServingModel& ServingModels::add(std::unique_ptr<ServingModel> model) {
  models_.push_back(std::move(model));
  return *models_.back();
}

ServingModel* ServingModels::find(ModelId id) const {
  for (const auto& model : models_) {
    if (model->id == id) return model.get();
  }
  return nullptr;
}

Result<ServingModel*> ServingModels::find(std::string_view name, ModelTask task) const {
  std::vector<std::string> names;
  for (const auto& model : models_) {
    if (model->is_leaving) continue;
    if (name.empty() ? model->task == task : model->name == name) {
      if (model->task == task) return model.get();
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{} is a model that {}; this route wants one that {}", name,
                               task_name(model->task), task_name(task))};
    }
    names.push_back(model->name);
  }
  if (name.empty()) {
    return Error{ErrorKind::NotFound, fmt::format("no served model {}", task_name(task))};
  }
  std::vector<ServingModel*> meant;
  for (const auto& model : models_) {
    if (!model->is_leaving && model->task == task && is_also_named(*model, name)) {
      meant.push_back(model.get());
    }
  }
  if (meant.size() == 1) return meant.front();
  if (names.empty()) {
    return Error{ErrorKind::NotFound,
                 fmt::format("the model does not exist: {}; none is served here that embeds or "
                             "reranks",
                             name)};
  }
  const auto nearest = nearest_name(name, names);
  return Error{ErrorKind::NotFound,
               fmt::format("the model does not exist: {}; {}", name,
                           nearest ? fmt::format("did you mean {}?", *nearest)
                                   : fmt::format("served here: {}", fmt::join(names, ", ")))};
}

Result<ServingModel*> ServingModels::find_any(std::string_view name) const {
  auto found = find(name, ModelTask::Embed);
  if (!found) found = find(name, ModelTask::Rerank);
  if (!found && name.empty()) {
    return Error{ErrorKind::NotFound, "no served model embeds or reranks"};
  }
  return found;
}

void ServingModels::remove(ModelId id) {
  std::erase_if(models_, [id](const auto& model) { return model->id == id; });
}

}  // namespace muster
