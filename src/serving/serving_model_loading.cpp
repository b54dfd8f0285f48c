// The part of the service that opens models, puts them onto devices and takes them away.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/build_info.h"
#include "base/text.h"
#include "base/wall_clock.h"
#include "jobs/precision_settling.h"
#include "serving/canary_store.h"
#include "serving/model_name.h"
#include "serving/serving_loop.h"

namespace muster {
namespace {

// What clients call a model that was given no name: its hub id, or the last name of its folder as
// it was written, whatever a link there leads to.
std::string name_of(const std::string& model) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(model, ignored)) return model;
  const auto path = std::filesystem::absolute(model, ignored).lexically_normal();
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

// Every device that is to have the model has this.
bool all_of_devices(ModelId model, const std::vector<GroupStatus>& devices,
                    const std::function<bool(const GroupStatus&)>& is_so) {
  bool has_device = false;
  for (const auto& device : devices) {
    if (!device.models.contains(model)) continue;
    if (!is_so(device)) return false;
    has_device = true;
  }
  return has_device;
}

// Each of them was drained by an operator.
bool is_to_rest(ModelId model, const std::vector<GroupStatus>& devices) {
  return all_of_devices(model, devices, [](const auto& device) { return device.is_to_rest; });
}

// None of them works, nor will soon.
bool is_idle(ModelId model, const std::vector<GroupStatus>& devices) {
  return all_of_devices(model, devices,
                        [](const auto& device) { return device.is_to_rest || device.is_failing; });
}

// The text of every canary: several words and scripts, so that many weights take part.
std::vector<std::uint32_t> canary_ids(ServingModel& model) {
  std::vector<std::uint32_t> ids;
  model.opened.text_encoder->encode(precision_texts().front(), ids);
  return ids;
}

}  // namespace

Status ServingLoop::open_first_models() {
  if (options_.models.size() > options_.models_most) return too_many_models();
  // The workers link torch while this thread reads tokenizers and hashes weights.
  std::vector<std::unique_ptr<ServingModel>> read;
  for (const auto& asked : options_.models) {
    read.push_back(MUSTER_TRY(read_model(asked)));
    read.back()->id = next_model_++;
    const auto is_same = [&](const auto& other) { return other->name == read.back()->name; };
    if (std::count_if(read.begin(), read.end(), is_same) > 1) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("two models have the same name: {}; NAME=MODEL gives another",
                               read.back()->name)};
    }
  }
  const auto cancelled = [this] { return events_.is_cancelled && events_.is_cancelled(); };
  MUSTER_TRY(fleet_->wait_for_greetings(cancelled));
  const Measure measure = [&](const Probe& probe) { return fleet_->probe(probe, cancelled); };
  for (auto& model : read) {
    MUSTER_TRY(settle(*model, engine_classes(model->asked.devices), measure,
                      [this](const std::string& text) { notice(text); }));
    MUSTER_TRY(place(std::move(model)));
  }
  return Done{};
}

Error ServingLoop::too_many_models() const {
  return Error{ErrorKind::ResourceExhausted,
               fmt::format("models_most allows {} models at a time", options_.models_most)};
}

Result<std::unique_ptr<ServingModel>> ServingLoop::read_model(const ServedModel& asked) const {
  const ModelChoice choice{.model = asked.model,
                           .length_max = asked.length_max,
                           .pooling = asked.pooling,
                           .normalize = asked.normalize,
                           .prompt_name = asked.prompt_name};
  auto model = std::make_unique<ServingModel>();
  model->asked = asked;
  model->opened = MUSTER_TRY(find_and_read(choice));
  MUSTER_TRY(open_texts(choice, model->opened));
  model->name = asked.name.empty() ? name_of(asked.model) : asked.name;
  MUSTER_TRY(check_model_name(model->name));
  model->row_size = model->opened.folder.encoder.hidden_size;
  if (const auto& rerank = model->opened.folder.rerank) {
    model->task = ModelTask::Rerank;
    model->row_size = rerank->label_count;
  }
  model->created_unix_seconds = unix_seconds();
  return model;
}

// The precision is settled once for all devices: one model must not answer in two precisions.
Status ServingLoop::settle(ServingModel& model, const std::vector<std::string>& classes,
                           const Measure& measure,
                           const std::function<void(const std::string&)>& on_notice) const {
  if (classes.empty()) return Error{ErrorKind::Unavailable, "no device can work"};
  const PrecisionQuestion question{.asked = model.asked.precision,
                                   .processor = options_.devices.front().model,
                                   .engine_class = classes.front(),
                                   .cache_folder = options_.cache_folder};
  model.precision = MUSTER_TRY(settle_precision(question, model.opened, measure, on_notice));
  model.equality_base =
      fmt::format("{} {}", model.opened.hash, precision_name(model.precision.precision));
  model.engine_classes = classes;
  return Done{};
}

// All names of devices are resolved before the fleet hears of the model, so a wrong one changes
// nothing.
Status ServingLoop::place(std::unique_ptr<ServingModel> model) {
  std::vector<std::size_t> devices;
  for (const auto& name : model->asked.devices) {
    std::vector<std::string> names;
    for (const auto& device : options_.devices) names.push_back(device.name());
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return Error{
          ErrorKind::InvalidArgument,
          fmt::format("{} is to be on a device that the server does not have: {}; it has {}",
                      model->name, name, fmt::join(names, ", "))};
    }
    devices.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  auto& served = models_.add(std::move(model));
  FleetModel what{.load = {.model = model_request(served.opened),
                           .precision = served.precision.precision,
                           .cpus = {}},
                  .devices = std::move(devices),
                  .canary = canary_ids(served),
                  .canary_rows = read_canary_rows(options_.cache_folder, served.canary_name()),
                  .is_measured_at_load = true};
  what.load.model.task = served.task;
  fleet_->models().load(served.id, std::move(what));
  return Done{};
}

// Models that are still being opened count as well, or many requests at once could pass the limit.
void ServingLoop::load_model(const ServedModel& model, OnLoaded on_done) {
  const auto is_unplaced = [this](const auto& one) { return models_.find(one.first) == nullptr; };
  const auto unplaced = std::count_if(loading_.begin(), loading_.end(), is_unplaced);
  if (models_.all().size() + static_cast<std::size_t>(unplaced) >= options_.models_most) {
    return on_done(too_many_models());
  }
  const auto id = next_model_++;
  loading_.emplace(id, std::move(on_done));
  const auto job = [this, id, model, classes = engine_classes(model.devices)] {
    auto opened = read_model(model);
    if (opened) {
      // Whoever waits for a precision must not keep the loop waiting: measured in a worker aside.
      const auto settled = settle(
          **opened, classes, [this](const Probe& probe) { return measure_aside(probe); },
          [](const std::string&) {});
      if (!settled) opened = settled.error();
    }
    const auto shared = std::make_shared<Result<std::unique_ptr<ServingModel>>>(std::move(opened));
    loop_.post([this, id, shared] { place_opened(id, std::move(*shared)); });
  };
  if (const auto taken = jobs_.push(job); !taken) {
    place_opened(id, Error{ErrorKind::ResourceExhausted,
                           fmt::format("too many models wait to be opened: {}", kJobsMost)});
  }
}

// It ends with the server: the worker is killed, whatever it is doing.
Result<ProbeVerdict> ServingLoop::measure_aside(const Probe& probe) const {
  const auto cancelled = [this] { return is_ending_.load(); };
  const FleetEvents deaf{.on_row = [](ItemKey, std::span<const std::byte>, std::size_t) {},
                         .on_item_failed = [](ItemKey, const Error&) {},
                         .on_notice = [](const std::string&, std::optional<std::size_t>) {},
                         .on_change = [] {}};
  FleetOptions options;
  options.devices = {options_.devices.front()};
  options.worker_program = options_.worker_program;
  options.torch_root = options_.torch_root;
  options.build = build_name();
  auto fleet = MUSTER_TRY(Fleet::start(std::move(options), deaf, clock_));
  MUSTER_TRY(fleet->wait_for_greetings(cancelled));
  return fleet->probe(probe, cancelled);
}

void ServingLoop::place_opened(ModelId id, Result<std::unique_ptr<ServingModel>> opened) {
  const auto fail = [&](const Error& error) {
    const auto on_done = std::move(loading_.at(id));
    loading_.erase(id);
    on_done(error);
  };
  if (!opened) return fail(opened.error());
  const auto& name = (*opened)->name;
  const auto& all = models_.all();
  if (std::any_of(all.begin(), all.end(), [&](const auto& one) { return one->name == name; })) {
    return fail(
        {ErrorKind::InvalidArgument, fmt::format("a model of that name is there: {}", name)});
  }
  (*opened)->id = id;
  if (const auto placed = place(*std::move(opened)); !placed) return fail(placed.error());
  place_soon();
  // Little will happen on devices that do not work, and somebody waits for word of the model.
  if (is_idle(id, fleet_->groups())) on_fleet_change();
}

Status ServingLoop::unload_model(const std::string& name) {
  for (const auto& model : models_.all()) {
    if (model->name != name || model->is_leaving) continue;
    model->is_leaving = true;
    const auto waiting = loading_.find(model->id);
    const auto on_loaded = waiting == loading_.end() ? nullptr : std::move(waiting->second);
    if (waiting != loading_.end()) loading_.erase(waiting);
    on_call_end(model->id);
    if (on_loaded) {
      on_loaded(
          Error{ErrorKind::Cancelled, "the model was unloaded while it was loading: " + name});
    }
    return Done{};
  }
  return models_.find(name, ModelTask::Embed).error();
}

// Of the devices of these names; of all where none is named.
std::vector<std::string> ServingLoop::engine_classes(
    const std::vector<std::string>& devices) const {
  std::vector<std::string> classes;
  for (const auto& device : fleet_->groups()) {
    const auto& name = device.engine_class;
    const bool is_named = std::find(devices.begin(), devices.end(), device.name) != devices.end();
    if (!devices.empty() && !is_named) continue;
    if (name.empty() || std::find(classes.begin(), classes.end(), name) != classes.end()) continue;
    classes.push_back(name);
  }
  return classes;
}

void ServingLoop::on_fleet_change() {
  const auto devices = fleet_->groups();
  std::vector<std::pair<OnLoaded, Result<ServedModelStatus>>> answers;
  note_classes(devices);
  note_idle_models(devices);
  for (const auto& model : models_.all()) {
    const auto status = status_of(*model, devices);
    if (status.state == ModelState::Ready) keep_canaries(*model);
    const auto waiting = loading_.find(model->id);
    if (waiting == loading_.end() || status.state == ModelState::Loading) continue;
    const bool is_ready = status.state == ModelState::Ready;
    answers.emplace_back(std::move(waiting->second),
                         is_ready ? Result<ServedModelStatus>(status)
                                  : Error{ErrorKind::Unavailable, status.reason});
    loading_.erase(waiting);
    if (!is_ready) model->is_leaving = true;
  }
  for (const auto& [on_done, answer] : answers) on_done(answer);
  if (!answers.empty()) {
    loop_.post([this] {
      std::vector<ModelId> leaving;
      for (const auto& model : models_.all()) {
        if (model->is_leaving) leaving.push_back(model->id);
      }
      for (const auto id : leaving) on_call_end(id);
    });
  }
}

// A device may come, or come again, with another class than all before: its rows are not cached as
// theirs, and clients are told from then on that there are two.
void ServingLoop::note_classes(const std::vector<GroupStatus>& devices) {
  device_classes_.resize(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& name = devices[i].engine_class;
    device_classes_[i] = name;
    if (name.empty()) continue;
    for (const auto& model : models_.all()) {
      auto& known = model->engine_classes;
      if (!devices[i].models.contains(model->id)) continue;
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    }
  }
}

// What waits for devices of which none will come would wait until its deadline. Who drains gives
// the time to end what a device has, and then its texts back: what is left then is refused.
void ServingLoop::note_idle_models(const std::vector<GroupStatus>& devices) {
  idle_models_.clear();
  const bool is_any_ending = std::any_of(devices.begin(), devices.end(), [](const auto& device) {
    return device.state == GroupState::Draining;
  });
  for (const auto& model : models_.all()) {
    if (is_idle(model->id, devices)) idle_models_.emplace(model->id, no_device(*model, devices));
  }
  if (idle_models_.empty() || is_any_ending) return;
  for (const auto id : calls_.ids()) {
    const auto* call = calls_.find(id);
    if (call == nullptr || call->on_tokenized) continue;
    const auto idle = idle_models_.find(call->model);
    if (idle != idle_models_.end()) fail(id, idle->second);
  }
}

void ServingLoop::keep_canaries(const ServingModel& model) {
  if (kept_canaries_.contains(model.id)) return;
  const auto rows = fleet_->models().canary_rows(model.id);
  if (rows.empty()) return;
  kept_canaries_.insert(model.id);
  if (rows == read_canary_rows(options_.cache_folder, model.canary_name())) return;
  if (const auto kept = write_canary_rows(options_.cache_folder, model.canary_name(), rows);
      !kept) {
    notice(fmt::format("the canary cannot be kept: {}", kept.error().message));
  }
}

std::vector<ServedModelStatus> ServingLoop::models() const {
  const auto devices = fleet_->groups();
  std::vector<ServedModelStatus> all;
  for (const auto& model : models_.all()) {
    if (!model->is_leaving) all.push_back(status_of(*model, devices));
  }
  return all;
}

std::uint32_t ServingLoop::row_size(std::string_view model) const {
  const auto found = models_.find(model, ModelTask::Embed);
  return found ? (*found)->row_size : 0;
}

ServedModelStatus ServingLoop::status_of(const ServingModel& model,
                                         const std::vector<GroupStatus>& devices) const {
  const auto& opened = model.opened;
  ServedModelStatus status{.id = model.id,
                           .name = model.name,
                           .path = opened.folder.path.string(),
                           .task = model.task,
                           .state = ModelState::Failed,
                           .reason = {},
                           .dim = model.row_size,
                           .length_max = opened.text_encoder->length_max(),
                           .vocab_size = opened.folder.encoder.vocab_size,
                           .prompts = {},
                           .default_prompt = opened.prompt_name,
                           .family = opened.folder.encoder.family,
                           .hash = opened.hash,
                           .pooling = opened.pooling,
                           .normalize = opened.normalize,
                           .precision = model.precision.precision,
                           .precision_reason = model.precision.reason,
                           .equality_class = model.equality_class(),
                           .created_unix_seconds = model.created_unix_seconds,
                           .request_count = model.request_count,
                           .text_count = model.text_count,
                           .token_count = model.token_count};
  for (const auto& prompt : opened.folder.sentence.prompts) status.prompts.push_back(prompt.name);
  if (is_to_rest(model.id, devices)) {
    status.state = ModelState::Drained;
    status.reason = no_device(model, devices).error.message;
    return status;
  }
  if (is_idle(model.id, devices)) {
    status.reason = no_device(model, devices).error.message;
    return status;
  }
  // The best state of all its devices; Failed only when it is that on each. A device that rests
  // says nothing.
  for (const auto& device : devices) {
    const auto found = device.models.find(model.id);
    if (found == device.models.end() || device.is_to_rest) continue;
    const auto state = found->second.state;
    if (state == ModelState::Ready) status.state = state;
    if (state == ModelState::Failed && status.reason.empty()) {
      status.reason = fmt::format("{}: {}", device.name, found->second.reason);
    }
    const bool may_come = state == ModelState::Loading || state == ModelState::Absent;
    if (may_come && status.state == ModelState::Failed) status.state = ModelState::Loading;
  }
  if (status.state != ModelState::Failed) status.reason.clear();
  return status;
}

}  // namespace muster
