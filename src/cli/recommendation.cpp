// The planner's advice for a person and for a program. Times are those of the planner's model and
// not measured; a dash stands where it has none. For a model that is served, the workload is that
// of the server: its full length, and as many texts as a batch's token budget holds.

#include "cli/recommendation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "base/text.h"
#include "cli/plan_view.h"
#include "modelfile/model_description.h"
#include "spec/gpu_catalogue.h"
#include "terminal/table.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

std::string milliseconds(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.3g} ms", *seconds * 1e3) : "-";
}

}  // namespace

// Hardware that may be bought, not that of this machine.
std::vector<DeviceClass> known_classes() {
  std::vector<DeviceClass> classes;
  for (const auto& gpu : gpu_catalogue()) classes.push_back(device_class(gpu));
  return classes;
}

std::string recommendation_text(const ModelDescription& model, const Machine& machine,
                                const Recommendation& advice, std::span<const DeviceClass> classes,
                                const TerminalInfo& terminal) {
  auto text =
      wrapped(fmt::format("{} on {}: {}, because {}", model.name, machine_words(machine),
                          advice.device ? machine.devices[*advice.device].name() : "no device",
                          advice.because),
              {.width = terminal.width, .indent = 2});
  Table devices({{.title = "device"},
                 {.title = "model", .may_shrink = true},
                 {"needs", Align::Right},
                 {.title = "usable", .align = Align::Right, .leaves = 2},
                 {.title = "step", .align = Align::Right, .leaves = 1},
                 {.title = "holds it"}});
  for (const auto& device : advice.devices) {
    const auto& its = machine.devices[device.device];
    devices.add_row({its.name(), machine.classes[its.device_class].model,
                     human_bytes(device.needed_bytes), human_bytes(device.usable_bytes),
                     milliseconds(device.step_seconds), device.fits() ? "yes" : "no"});
  }
  text += "\n" + devices.render(terminal.width, terminal.has_color);
  Table hardware({{.title = "hardware", .may_shrink = true},
                  {.title = "cut"},
                  {"fullest", Align::Right},
                  {"a step", Align::Right}});
  for (const auto& option : advice.hardware) {
    hardware.add_row({fmt::format("{}x {}", option.count, classes[option.device_class].model),
                      fmt::format("{} stage{} x {} device{}", option.pipeline_parallel,
                                  option.pipeline_parallel == 1 ? "" : "s", option.tensor_parallel,
                                  option.tensor_parallel == 1 ? "" : "s"),
                      human_bytes(option.largest_used_bytes),
                      milliseconds(option.latency_seconds)});
  }
  return text + "\n" +
         wrapped("what would hold it, the fewest of each type", {.width = terminal.width}) +
         hardware.render(terminal.width, terminal.has_color);
}

nlohmann::ordered_json recommendation_json(const ModelDescription& model, const Machine& machine,
                                           const Recommendation& advice,
                                           std::span<const DeviceClass> classes) {
  auto devices = Json::array();
  for (const auto& device : advice.devices) {
    devices.push_back({{"device", machine.devices[device.device].name()},
                       {"needed_bytes", device.needed_bytes},
                       {"usable_bytes", device.usable_bytes},
                       {"step_seconds", or_null(device.step_seconds)},
                       {"fits", device.fits()}});
  }
  auto hardware = Json::array();
  for (const auto& option : advice.hardware) {
    hardware.push_back({{"gpu", classes[option.device_class].model},
                        {"count", option.count},
                        {"tensor_parallel", option.tensor_parallel},
                        {"pipeline_parallel", option.pipeline_parallel},
                        {"largest_used_bytes", option.largest_used_bytes},
                        {"latency_seconds", or_null(option.latency_seconds)}});
  }
  return {
      {"model", model.name},
      {"machine", machine.name},
      {"recommended_device", advice.device ? Json(machine.devices[*advice.device].name()) : Json()},
      {"because", advice.because},
      {"devices", std::move(devices)},
      {"hardware", std::move(hardware)}};
}

Result<std::string> served_recommendation(const ServedModelStatus& served, const Machine& machine,
                                          std::uint32_t batch_tokens) {
  const auto source = MUSTER_TRY(find_model_source(served.path));
  const auto model = MUSTER_TRY(describe_model(source));
  PlanRequest request;
  request.workload.task = PlanTask::Embed;
  request.workload.context = served.length_max;
  // At least one text, and no division by a length of zero.
  request.workload.batch =
      std::max<std::uint32_t>(1, batch_tokens / std::max<std::uint32_t>(1, served.length_max));
  request.workload.dtype = std::string(precision_name(served.precision));
  const auto classes = known_classes();
  const auto advice = MUSTER_TRY(recommend(model, machine, request, classes));
  return recommendation_json(model, machine, advice, classes).dump();
}

}  // namespace muster
