// The verdict and the assumptions of a plan or an estimate, for a person. A verdict is worth what
// it assumes, so the workload, the dtype and the devices always stand below it.
#include "cli/fit_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/plan_view.h"
#include "planner/forms/plan_json.h"
#include "planner/memory/memory_encoder.h"
#include "terminal/style.h"
#include "terminal/text_width.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

Role role_of(Fit fit) {
  switch (fit) {
    case Fit::OnDevices:
      return Role::Good;
    case Fit::WithOffloading:
      return Role::Warning;
    case Fit::No:
      return Role::Bad;
  }
  return Role::Text;
}

// "BF16", or "mostly Q4_K" where tensors differ.
// By bytes and not by tensors: many small tensors (norms, biases) are kept in another dtype.
std::string stored_dtype(const ModelDescription& model) {
  std::map<std::string, std::uint64_t> bytes;
  for (const auto& tensor : model.tensors) bytes[tensor.dtype] += tensor.bytes;
  if (bytes.empty()) return "nothing";
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return (bytes.size() == 1 ? "" : "mostly ") + most->first;
}

std::string precision_text(const ModelDescription& model, const Workload& workload) {
  if (workload.task == PlanTask::Train) {
    return fmt::format("training precision {}",
                       training_precision_name(workload.training.precision));
  }
  if (workload.dtype) return "weights in " + *workload.dtype;
  // The engine takes fp32 or what is quicker and near enough: the most is counted.
  const bool is_engine = workload.task == PlanTask::Embed && is_engine_encoder(model.shape);
  return is_engine ? "weights in fp32" : fmt::format("weights as stored ({})", stored_dtype(model));
}

std::string device_name(const Machine& machine, const MachineDevice& device) {
  const auto& its = machine.classes[device.device_class];
  if (its.kind != DeviceKind::Cpu) return printable(its.model);
  const auto cores = std::max<std::uint32_t>(1, device.core_count);
  return fmt::format("a CPU of {} core{}", cores, cores == 1 ? "" : "s");
}

// "A10G-24G", "a CPU of 2 cores", "A10G-24G or T4-16G", "devices of 5 kinds".
std::string devices_text(const Machine& machine, const Plan& plan) {
  constexpr std::size_t kNamesMax = 3;
  std::vector<std::string> names;
  for (const auto index : plan.usable_devices) {
    auto name = device_name(machine, machine.devices[index]);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.size() > kNamesMax) return fmt::format("devices of {} kinds", names.size());
  return fmt::format("{}", fmt::join(names, " or "));
}

}  // namespace

std::string verdict_text(const FitVerdict& verdict, const TerminalInfo& terminal) {
  const auto text = wrapped(verdict.sentence, {.width = terminal.width, .indent = 2});
  const auto words = fit_words(verdict.fit);
  if (!text.starts_with(words)) return text;
  const Style style{.role = role_of(verdict.fit), .is_bold = true};
  return styled_start(text, words.size(), style, terminal.has_color);
}

std::string assumption_text(const ModelDescription& model, const Machine& machine, const Plan& plan,
                            std::size_t width) {
  const auto& workload = plan.workload;
  const auto devices = devices_text(machine, plan);
  return wrapped(
      fmt::format("to {}: {} sequence{} of {} tokens, {}{}{}", plan_task_name(workload.task),
                  with_thousands(workload.batch), workload.batch == 1 ? "" : "s",
                  with_thousands(workload.context), precision_text(model, workload),
                  devices.empty() ? "" : ", on ", devices),
      {.width = width, .indent = 2});
}

}  // namespace muster
