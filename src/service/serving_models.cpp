#include "service/serving_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/build_info.h"
#include "base/hash.h"
#include "base/text.h"

namespace muster {
namespace {

std::string_view task_name(ModelTask task) {
  return task == ModelTask::Embed ? "embeds" : "reranks";
}

}  // namespace

const CacheKey& ServingModel::scope(const std::string& prompt, bool is_cut_left) {
  const auto [found, is_new] = scopes_.try_emplace({prompt, is_cut_left});
  if (is_new) {
    const auto limit = std::to_string(opened.text_encoder->length_max());
    const std::array<std::string_view, 6> fields{
        equality_class, pooling_name(opened.pooling),  opened.normalize ? "normalized" : "", prompt,
        limit,          is_cut_left ? "left" : "right"};
    found->second = cache_scope(fields);
  }
  return found->second;
}

std::string ServingModel::canary_name() const {
  return hash_hex(fmt::format("{} {} {} {} {}", build_name(), opened.hash,
                              precision_name(precision.precision), pooling_name(opened.pooling),
                              opened.normalize));
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
      return Error{
          ErrorKind::InvalidArgument,
          fmt::format("the model {} {}, which this route does not", name, task_name(model->task))};
    }
    names.push_back(model->name);
  }
  if (name.empty()) {
    return Error{ErrorKind::NotFound, fmt::format("no served model {}", task_name(task))};
  }
  const auto nearest = nearest_name(name, names);
  return Error{ErrorKind::NotFound,
               fmt::format("the model does not exist: {}; {}", name,
                           nearest ? fmt::format("did you mean {}?", *nearest)
                                   : fmt::format("served here: {}", fmt::join(names, ", ")))};
}

void ServingModels::remove(ModelId id) {
  std::erase_if(models_, [id](const auto& model) { return model->id == id; });
}

}  // namespace muster
