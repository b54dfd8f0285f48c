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

// The text of every canary: several words and scripts, so that many weights take part.
std::vector<std::uint32_t> canary_ids(ServingModel& model) {
  std::vector<std::uint32_t> ids;
  model.opened.text_encoder->encode(precision_texts().front(), ids);
  return ids;
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
  const Measure measure = [&](const Probe& probe) { return fleet_->probe(probe, cancelled); };
  for (auto& model : read) {
    MUSTER_TRY(
        settle(*model, engine_classes(model->asked.devices), measure,
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

// On the thread that reads models.
void ServingLoop::do_beside(ModelId id, const std::function<void()>& job) {
  if (const auto taken = jobs_.push(job); !taken) {
    fail_loading(id, {ErrorKind::ResourceExhausted,
                      fmt::format("too many models wait to be opened: {}", kJobsMost)});
  }
}

// Workers that were idle until now are started for a model that is one.
void ServingLoop::on_read(ModelId id, Result<std::unique_ptr<ServingModel>> read) {
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

// One of its devices has said which engine it has, or none will.
bool ServingLoop::have_greeted(const ServedModel& model, const std::vector<GroupStatus>& devices) {
  bool may_come = false;
  for (const auto& device : devices) {
    const auto& names = model.devices;
    const bool is_named = std::find(names.begin(), names.end(), device.name) != names.end();
    if (!names.empty() && !is_named) continue;
    if (!device.engine_class.empty()) return true;
    may_come = may_come || (!device.is_failing && !device.is_to_rest);
  }
  return !may_come;
}

// Whoever waits for a precision must not keep the loop waiting: measured in a worker aside.
void ServingLoop::settle_read_models(const std::vector<GroupStatus>& devices) {
  std::vector<ModelId> due;
  for (const auto& [id, loading] : loading_) {
    if (loading.read && have_greeted(loading.asked, devices)) due.push_back(id);
  }
  for (const auto id : due) {
    using Opened = Result<std::unique_ptr<ServingModel>>;
    auto& loading = loading_.at(id);
    const auto opened = std::make_shared<Opened>(std::move(loading.read));
    do_beside(id, [this, id, opened, device = device_to_measure(loading.asked, devices),
                   classes = engine_classes(loading.asked.devices)] {
      const auto settled = settle(
          ***opened, classes,
          [this, device](const Probe& probe) { return measure_aside(probe, device); },
          [this, &name = (**opened)->name](const std::string& text) {
            loop_.post([this, line = fmt::format("{}: {}", name, text)] { notice(line); });
          });
      if (!settled) *opened = settled.error();
      loop_.post([this, id, opened] { place_opened(id, std::move(*opened)); });
    });
  }
}

// The first of its devices that no operator has drained; nullopt: there is none.
std::optional<std::size_t> ServingLoop::device_to_measure(const ServedModel& model,
                                                          const std::vector<GroupStatus>& devices) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& names = model.devices;
    const bool is_asked =
        names.empty() || std::find(names.begin(), names.end(), devices[i].name) != names.end();
    if (is_asked && !devices[i].is_to_rest) return i;
  }
  return std::nullopt;
}

// It ends with the server: the worker is killed, whatever it is doing.
Result<ProbeVerdict> ServingLoop::measure_aside(const Probe& probe,
                                                std::optional<std::size_t> device) const {
  if (!device) {
    return Error{ErrorKind::Unavailable, "every device is drained"};
  }
  const auto cancelled = [this] { return is_ending_.load(); };
  const FleetEvents deaf{.on_row = [](ItemKey, std::span<const std::byte>, std::size_t) {},
                         .on_item_failed = [](ItemKey, const Error&) {},
                         .on_notice = [](const std::string&, std::optional<std::size_t>) {},
                         .on_change = [] {}};
  FleetOptions options;
  options.devices = {options_.devices[*device]};
  options.worker_program = options_.worker_program;
  options.torch_root = options_.torch_root;
  options.build = build_name();
  auto fleet = MUSTER_TRY(Fleet::start(std::move(options), deaf, clock_));
  MUSTER_TRY(fleet->wait_for_greetings(cancelled));
  return fleet->probe(probe, cancelled);
}

void ServingLoop::fail_loading(ModelId id, const Error& error) {
  const auto on_done = std::move(loading_.at(id).on_done);
  loading_.erase(id);
  on_done(error);
}

void ServingLoop::place_opened(ModelId id, Result<std::unique_ptr<ServingModel>> opened) {
  if (!opened) return fail_loading(id, opened.error());
  auto& model = **opened;
  auto& ticket = loading_.at(id).ticket;
  if (const auto named = ticket.take_name(model.name); !named) {
    return fail_loading(id, named.error());
  }
  model.ticket = std::move(ticket);
  model.id = id;
  if (const auto placed = place(*std::move(opened)); !placed) {
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
