// The part of the service that opens models, puts them onto devices and takes them away.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
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

// The text of every canary: several words and scripts, so that many weights take part.
std::vector<std::uint32_t> canary_ids(ServingModel& model) {
  std::vector<std::uint32_t> ids;
  model.opened.text_encoder->encode(precision_texts().front(), ids);
  return ids;
}

bool is_asked_for(const ServedModel& model, const GroupStatus& device) {
  const auto& names = model.devices;
  return names.empty() || std::find(names.begin(), names.end(), device.name) != names.end();
}

// The worker of a GPU without a driver says its engine, too, and nothing can be computed there
// (engine/cuda.h).
bool can_measure(const GroupStatus& device) {
  const auto& engine = device.engine_class;
  return !device.is_to_rest && !device.is_failing && !engine.empty() &&
         !engine.starts_with("cuda/none/");
}

// It may yet say which engine it has.
bool may_greet(const GroupStatus& device) {
  return device.engine_class.empty() && !device.is_to_rest && !device.is_failing;
}

// Of the only device of a fleet that measures aside, which says it of all that it has.
std::string_view how_ended(std::string_view why_died) {
  for (const std::string_view of_all :
       {"no device can work: ", "no device can measure precisions: "}) {
    if (why_died.starts_with(of_all)) return why_died.substr(of_all.size());
  }
  return why_died;
}

}  // namespace

// Of the devices, those that no model is to be on: a worker there would have nothing to do.
std::vector<std::size_t> ServingLoop::idle_devices() const {
  std::vector<std::size_t> idle;
  for (std::size_t i = 0; i < options_.devices.size(); ++i) {
    const auto name = options_.devices[i].name();
    const auto wants_it = [&](const ServedModel& model) {
      return model.devices.empty() ||
             std::find(model.devices.begin(), model.devices.end(), name) != model.devices.end();
    };
    if (std::none_of(options_.models.begin(), options_.models.end(), wants_it)) idle.push_back(i);
  }
  return idle;
}

Status ServingLoop::open_first_models() {
  // The workers link torch while this thread reads tokenizers and hashes weights.
  std::vector<std::unique_ptr<ServingModel>> read;
  for (const auto& asked : options_.models) {
    auto ticket = MUSTER_TRY(roster_.enter());
    auto& model = *read.emplace_back(MUSTER_TRY(read_model(asked)));
    model.id = next_model_++;
    if (!ticket.take_name(model.name)) {
      return Error{
          ErrorKind::InvalidArgument,
          fmt::format("two models have the same name: {}; NAME=MODEL gives another", model.name)};
    }
    model.ticket = std::move(ticket);
  }
  if (read.empty()) return Done{};
  const auto cancelled = [this] { return events_.is_cancelled && events_.is_cancelled(); };
  MUSTER_TRY(fleet_->wait_for_greetings(cancelled));
  const MeasurePrecisions measure = [&](const Probe& probe) {
    return fleet_->probe(probe, cancelled);
  };
  const auto devices = fleet_->groups();
  const auto measured = device_to_measure({}, devices, {});  // the fleet takes its first for all
  for (auto& model : read) {
    MUSTER_TRY(
        settle(*model, engine_classes(model->asked.devices),
               question_of(model->asked, devices, measured), measure,
               [&](const std::string& text) { notice(fmt::format("{}: {}", model->name, text)); }));
    MUSTER_TRY(place(std::move(model)));
  }
  return Done{};
}

Result<std::unique_ptr<ServingModel>> ServingLoop::read_model(const ServedModel& asked) const {
  MUSTER_TRY(check_encoder_settings(asked, options_.devices));
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

// A verdict is that of the device that was measured. Where none can be, that of another of the
// model's devices may have been kept.
PrecisionQuestion ServingLoop::question_of(const ServedModel& model,
                                           const std::vector<GroupStatus>& devices,
                                           std::optional<std::size_t> measured) const {
  PrecisionQuestion question{.asked = model.precision,
                             .processor = {},
                             .engine_class = {},
                             .cache_folder = options_.cache_folder};
  for (std::size_t i = 0; !measured && i < devices.size(); ++i) {
    if (is_asked_for(model, devices[i]) && !devices[i].engine_class.empty()) measured = i;
  }
  if (measured) {
    question.processor = options_.devices[*measured].model;
    question.engine_class = devices[*measured].engine_class;
  }
  return question;
}

// The precision is settled once for all devices: one model must not answer in two precisions.
Status ServingLoop::settle(ServingModel& model, const std::vector<std::string>& classes,
                           const PrecisionQuestion& question, const MeasurePrecisions& measure,
                           const std::function<void(const std::string&)>& on_notice) const {
  if (classes.empty()) return Error{ErrorKind::Unavailable, "no device can work"};
  model.precision = MUSTER_TRY(settle_precision(question, model.opened, measure, on_notice));
  model.equality_base =
      fmt::format("{} {}", model.opened.hash, precision_name(model.precision.precision));
  model.engine_classes = classes;
  return Done{};
}

// Empty: all.
Result<std::vector<std::size_t>> ServingLoop::devices_of(const ServedModel& model) const {
  std::vector<std::string> names;
  for (const auto& device : options_.devices) names.push_back(device.name());
  std::vector<std::size_t> devices;
  for (const auto& name : model.devices) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return Error{
          ErrorKind::InvalidArgument,
          fmt::format("{} is to be on a device that the server does not have: {}; it has {}",
                      model.name.empty() ? model.model : model.name, name, fmt::join(names, ", "))};
    }
    devices.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  return devices;
}

// All names of devices are resolved before the fleet hears of the model, so a wrong one changes
// nothing.
Status ServingLoop::place(std::unique_ptr<ServingModel> model) {
  auto devices = MUSTER_TRY(devices_of(model->asked));
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

void ServingLoop::load_model(const ServedModel& model, OnLoaded on_done) {
  if (counts_.is_draining) return on_done(server_ends_error());
  auto ticket = roster_.enter();
  if (!ticket) return on_done(ticket.error());
  if (!model.name.empty()) {
    if (const auto named = ticket->take_name(model.name); !named) return on_done(named.error());
  }
  if (const auto devices = devices_of(model); !devices) return on_done(devices.error());
  const auto id = next_model_++;
  loading_.emplace(
      id, Loading{.asked = model, .on_done = std::move(on_done), .ticket = *std::move(ticket)});
  do_beside(id, [this, id, model] {
    const auto read = std::make_shared<Result<std::unique_ptr<ServingModel>>>(read_model(model));
    loop_.post([this, id, read] { on_read(id, std::move(*read)); });
  });
}

// On the thread that reads models. False: too many wait for that, and this one has failed.
bool ServingLoop::do_beside(ModelId id, const std::function<void()>& job) {
  if (jobs_.push(job)) return true;
  fail_loading(id, {ErrorKind::ResourceExhausted,
                    fmt::format("too many models wait to be opened: {}", kJobsMost)});
  return false;
}

// Workers that were idle until now are started for a model that is one.
void ServingLoop::on_read(ModelId id, Result<std::unique_ptr<ServingModel>> read) {
  if (!loading_.contains(id)) return;  // the server ends
  if (!read) return fail_loading(id, read.error());
  auto& loading = loading_.at(id);
  loading.read = *std::move(read);
  const auto devices = devices_of(loading.asked);  // its names were checked before
  for (std::size_t i = 0; i < options_.devices.size(); ++i) {
    const bool is_asked =
        devices->empty() || std::find(devices->begin(), devices->end(), i) != devices->end();
    if (is_asked) fleet_->admin().wake(i);
  }
  settle_read_models(fleet_->groups());
}

// One of its devices. Where workers have ended that measured it: another one of their kind.
bool ServingLoop::is_candidate(const ServedModel& model, const std::vector<GroupStatus>& devices,
                               std::size_t device, const std::set<std::size_t>& died_on) const {
  if (!is_asked_for(model, devices[device])) return false;
  if (died_on.empty()) return true;
  const auto kind = options_.devices[*died_on.begin()].kind;
  return !died_on.contains(device) && options_.devices[device].kind == kind;
}

// Whether it is known where its precision is to be measured: the first of its devices that may,
// whichever of them are slower to start. Else any has said which engine it has. Or none will.
bool ServingLoop::is_device_known(const ServedModel& model, const std::vector<GroupStatus>& devices,
                                  const std::set<std::size_t>& died_on) const {
  bool is_one_to_come = false;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!is_candidate(model, devices, i, died_on)) continue;
    if (model.precision && !devices[i].engine_class.empty()) return true;
    if (!is_one_to_come && can_measure(devices[i])) return true;
    is_one_to_come = is_one_to_come || may_greet(devices[i]);
  }
  return !is_one_to_come;
}

// One that can measure it, or may once it has started.
bool ServingLoop::has_candidate(const Loading& loading,
                                const std::vector<GroupStatus>& devices) const {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const bool may_measure = can_measure(devices[i]) || may_greet(devices[i]);
    if (may_measure && is_candidate(loading.asked, devices, i, loading.died_on)) return true;
  }
  return false;
}

// One after the other, so that each is measured on a device that is not drained by then.
void ServingLoop::settle_read_models(const std::vector<GroupStatus>& devices) {
  if (settling_) {
    const auto device = settling_->device;
    if (device && devices[*device].is_to_rest) *settling_->is_unwanted = true;
    return;
  }
  const auto due = std::find_if(loading_.begin(), loading_.end(), [&](const auto& entry) {
    const auto& loading = entry.second;
    return loading.read && is_device_known(loading.asked, devices, loading.died_on);
  });
  if (due != loading_.end()) settle_beside(due->first, devices);
}

// Whoever waits for a precision must not keep the loop waiting: measured in a worker aside.
void ServingLoop::settle_beside(ModelId id, const std::vector<GroupStatus>& devices) {
  auto& loading = loading_.at(id);
  const bool is_one_awake = std::any_of(devices.begin(), devices.end(), [&](const auto& device) {
    return is_asked_for(loading.asked, device) && !device.is_to_rest;
  });
  const auto why_awake = loading.died_on.empty() ? "no device can work" : loading.why_died;
  const Settling settling{.device = device_to_measure(loading.asked, devices, loading.died_on),
                          .why_none = is_one_awake ? why_awake : "every device is drained"};
  settling_ = settling;
  if (settling.device && !loading.died_on.empty()) {
    notice(fmt::format("{}: its precision is settled on {} instead: {}", loading.read->name,
                       options_.devices[*settling.device].name(), how_ended(loading.why_died)));
  }
  const auto model = std::make_shared<std::unique_ptr<ServingModel>>(std::move(loading.read));
  const bool is_taken =
      do_beside(id, [this, id, model, settling,
                     question = question_of(loading.asked, devices, settling.device),
                     classes = engine_classes(loading.asked.devices)] {
        const auto settled = std::make_shared<Status>(settle(
            **model, classes, question,
            [&](const Probe& probe) { return measure_aside(probe, settling); },
            [this, &name = (*model)->name](const std::string& text) {
              loop_.post([this, line = fmt::format("{}: {}", name, text)] { notice(line); });
            }));
        loop_.post([this, id, model, settled] { on_settled(id, std::move(*model), *settled); });
      });
  if (!is_taken) settling_.reset();
}

// One whose device was drained meanwhile is measured on another, as is one whose worker ended.
void ServingLoop::on_settled(ModelId id, std::unique_ptr<ServingModel> model,
                             const Status& settled) {
  const auto measured = settling_->device;
  settling_.reset();
  const auto found = loading_.find(id);
  if (found == loading_.end()) return;  // the server ends
  auto& loading = found->second;
  const auto devices = fleet_->groups();
  const bool has_died = !settled && settled.error().kind == ErrorKind::Unavailable && measured;
  if (has_died) {
    loading.died_on.insert(*measured);
    loading.why_died = settled.error().message;
  }
  if (settled) {
    place_opened(id, std::move(model));
  } else if (settled.error().kind == ErrorKind::Cancelled) {
    loading.read = std::move(model);
  } else if (has_died && has_candidate(loading, devices)) {
    if (!is_device_known(loading.asked, devices, loading.died_on)) {
      notice(fmt::format("{}: its precision waits for a device that starts: {}", model->name,
                         how_ended(loading.why_died)));
    }
    loading.read = std::move(model);
  } else {
    fail_loading(id, settled.error());
  }
  settle_read_models(fleet_->groups());
}

// The first of its devices that works and that no operator has drained; nullopt: there is none.
std::optional<std::size_t> ServingLoop::device_to_measure(
    const ServedModel& model, const std::vector<GroupStatus>& devices,
    const std::set<std::size_t>& died_on) const {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (is_candidate(model, devices, i, died_on) && can_measure(devices[i])) return i;
  }
  return std::nullopt;
}

// It ends with the server, or when its device is drained: the worker is killed, whatever it is
// doing.
//
// Errors: Cancelled.
Result<MeasuredPrecisions> ServingLoop::measure_aside(const Probe& probe,
                                                      const Settling& settling) const {
  if (!settling.device) return Error{ErrorKind::Unavailable, settling.why_none};
  const auto cancelled = [&] { return is_ending_.load() || settling.is_unwanted->load(); };
  if (cancelled()) return Error{ErrorKind::Cancelled, "cancelled"};
  const FleetEvents deaf{.on_row = [](ItemKey, std::span<const std::byte>, std::size_t) {},
                         .on_item_failed = [](ItemKey, const Error&) {},
                         .on_notice = [](const std::string&, std::optional<std::size_t>) {},
                         .on_change = [] {}};
  FleetOptions options;
  options.devices = {options_.devices[*settling.device]};
  options.worker_program = options_.worker_program;
  options.torch_root = options_.torch_root;
  options.build = build_name();
  auto fleet = MUSTER_TRY(Fleet::start(std::move(options), deaf, clock_));
  MUSTER_TRY(fleet->wait_for_greetings(cancelled));
  return fleet->probe(probe, cancelled);
}

// Who waits for a model that no device has begun to load: its measurement may take long.
void ServingLoop::end_loads() {
  if (settling_) *settling_->is_unwanted = true;
  std::vector<ModelId> ending;
  for (const auto& [id, loading] : loading_) {
    if (models_.find(id) == nullptr) ending.push_back(id);
  }
  for (const auto id : ending) fail_loading(id, server_ends_error());
}

void ServingLoop::fail_loading(ModelId id, const Error& error) {
  const auto on_done = std::move(loading_.at(id).on_done);
  loading_.erase(id);
  on_done(error);
}

void ServingLoop::place_opened(ModelId id, std::unique_ptr<ServingModel> opened) {
  auto& model = *opened;
  auto& ticket = loading_.at(id).ticket;
  if (const auto named = ticket.take_name(model.name); !named) {
    return fail_loading(id, named.error());
  }
  model.ticket = std::move(ticket);
  model.id = id;
  if (const auto placed = place(std::move(opened)); !placed) {
    return fail_loading(id, placed.error());
  }
  place_soon();
  on_fleet_change();  // little will happen on devices that do not work, and somebody waits for word
}

// By any name that a request may use.
Status ServingLoop::unload_model(const std::string& name) {
  auto found = models_.find(name, ModelTask::Embed);
  if (!found) {
    const auto ranks = models_.find(name, ModelTask::Rerank);
    if (!ranks) return found.error();
    found = *ranks;
  }
  auto& model = **found;
  model.is_leaving = true;
  model.ticket.leave();
  const auto waiting = loading_.find(model.id);
  const auto on_loaded = waiting == loading_.end() ? nullptr : std::move(waiting->second.on_done);
  if (waiting != loading_.end()) loading_.erase(waiting);
  const auto called = model.name;
  on_call_end(model.id);  // it may be gone then
  if (on_loaded) {
    on_loaded(
        Error{ErrorKind::Cancelled, "the model was unloaded while it was loading: " + called});
  }
  return Done{};
}

}  // namespace muster
