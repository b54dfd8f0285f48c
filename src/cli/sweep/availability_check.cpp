// The availability check of document 1: which devices were asked for, which are there, and why the
// others are not. Unlike there, a missing device ends the command unless somebody has said that it
// may be missing. One look at the devices answers for all points.
#include "cli/sweep/availability_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/build_info.h"
#include "base/environment.h"
#include "base/text.h"
#include "cli/device_choice.h"
#include "cli/find_machine.h"
#include "cli/lost_gpus.h"
#include "cli/messages.h"
#include "cli/places.h"
#include "cli/telemetry_options.h"
#include "doctor/checks.h"
#include "hw/device_names.h"
#include "hw/inventory.h"
#include "sweep/sweep_points.h"
#include "telemetry/collector.h"

namespace muster {
namespace {

// What the checks of devices are made from, without what only `muster doctor` looks at. Where only
// CPUs are asked for no driver is opened.
Result<DoctorFacts> look_at_devices(const CommandContext& context, bool wants_gpus) {
  auto options = MUSTER_TRY(collector_options(context.config));
  options.history = Duration{};
  DoctorFacts facts;
  facts.build = std::string(build_name());
  MachineSources sources;
  sources.root = options.root;
  facts.inventory = MUSTER_TRY(find_inventory(sources));
  // Without a worker there is nothing that could open them; its server says so.
  if (const auto worker = find_worker_program(context.config)) {
    facts.inventory.standins = find_standins(worker->path);
  }
  if (!wants_gpus) {
    facts.inventory.gpu_absent_reason = "GPUs were not looked for";
    return facts;
  }
  const auto collector = Collector::start(options, context.clock);
  if (!collector) {
    facts.inventory.gpu_absent_reason = collector.error().message;
    return facts;
  }
  const auto& machine = (*collector)->machine();
  facts.cuda_visible_devices = environment_variable("CUDA_VISIBLE_DEVICES");
  facts.inventory.gpus = devices_for_work(machine, facts.cuda_visible_devices);
  facts.inventory.gpu_absent_reason = machine.gpu_absent_reason;
  facts.snapshot = (*collector)->snapshot();
  mark_lost(facts.inventory.gpus, facts.snapshot.devices, CudaVariables::of_environment());
  return facts;
}

std::vector<Check> checks_of(const DoctorFacts& facts) {
  std::vector<Check> checks;
  for (const auto& status : facts.snapshot.devices) {
    for (auto& check : check_device(status, facts)) checks.push_back(std::move(check));
  }
  return checks;
}

// Whether a list is a rule and no names: it is resolved, so that a point says what it was.
bool is_rule(const std::string& list) { return list == "auto" || list == "cuda" || list == "cpu"; }

// Of a server that is started here it means what device_count_most leaves. A kind of which there
// is none stays, as a device that is missing.
Result<std::string> names_of(const std::string& list, const DoctorFacts& facts,
                             const Config& settings, bool is_remote) {
  if (!is_rule(list)) return list;
  const auto devices =
      is_remote ? parse_devices(list, facts.inventory, settings.count(SettingId::CoresPerDevice))
                : chosen_devices(settings, list, facts.inventory);
  if (!devices && devices.error().kind == ErrorKind::Unavailable) return list;
  if (!devices) return devices.error();
  std::vector<std::string> names;
  for (const auto& device : *devices) names.push_back(device.name());
  return fmt::format("{}", fmt::join(names, ","));
}

PointAvailability as_point(const Availability& found) {
  PointAvailability point{.requested = found.requested,
                          .available = found.available,
                          .unavailable = found.unavailable,
                          .errors = {}};
  for (const auto& name : found.unavailable) {
    const auto& why = found.errors.at(name);
    // Most reasons begin with the device's name already.
    point.errors.push_back(why.find(name) == std::string::npos ? name + ": " + why : why);
  }
  return point;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// The server is told device_count_most, too, and leaves out without a word what is beyond it.
Status check_count(const Config& settings, const NamedDevices& named, std::size_t count) {
  const auto most = settings.count(SettingId::DeviceCountMost);
  if (!most || count <= *most) return Done{};
  return invalid_error(fmt::format("{} names {} devices, and device_count_most is {} ({})",
                                   named.place, count, *most,
                                   settings.at(SettingId::DeviceCountMost).place));
}

void add_new(std::vector<std::string>& all, const std::vector<std::string>& more) {
  for (const auto& one : more) {
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  }
}

void add_to(PointAvailability& all, const PointAvailability& more) {
  add_new(all.requested, more.requested);
  add_new(all.available, more.available);
  add_new(all.unavailable, more.unavailable);
  add_new(all.errors, more.errors);
}

}  // namespace

void add_lost_gpus(const std::string& list, const Inventory& inventory, Availability& found,
                   std::optional<std::uint32_t> most) {
  if (!takes_all_gpus(list)) return;
  // Where no GPU is left, what was found are the CPUs in their stead.
  const bool has_gpus = std::ranges::any_of(inventory.gpus, &Device::is_usable);
  for (const auto& gpu : inventory.gpus) {
    if (most && has_gpus && found.requested.size() >= *most) return;
    if (gpu.lost_reason.empty()) continue;
    const auto reason = fmt::format("{} is lost: {}", gpu.name(), gpu.lost_reason);
    const bool is_said = std::ranges::any_of(found.errors, [&](const auto& error) {
      return error.second.find(reason) != std::string::npos;
    });
    if (is_said || std::ranges::find(found.requested, gpu.name()) != found.requested.end()) {
      continue;
    }
    found.requested.push_back(gpu.name());
    found.unavailable.push_back(gpu.name());
    found.errors[gpu.name()] = reason;
  }
}

// GPUs stand where the first of them was named.
std::string used_devices(const std::string& names, const PointAvailability& point) {
  const auto pieces = split(lower(names), ',');
  const auto is_share = [](const std::string& piece) { return trim(piece).ends_with("xcpu"); };
  if (std::ranges::none_of(pieces, is_share)) {
    return fmt::format("{}", fmt::join(point.available, ","));
  }
  std::vector<std::string> gpus;
  for (const auto& name : point.available) {
    if (!name.starts_with("cpu:")) gpus.push_back(name);
  }
  std::vector<std::string> used;
  for (const auto& piece : pieces) {
    const std::string name(trim(piece));
    if (!name.starts_with("cpu") && !is_share(name)) {
      used.insert(used.end(), gpus.begin(), gpus.end());
      gpus.clear();
      continue;
    }
    const bool is_missing = std::ranges::any_of(
        point.unavailable, [&](const std::string& other) { return lower(other) == name; });
    if (!is_missing) used.push_back(name);
  }
  return fmt::format("{}", fmt::join(used, ","));
}

std::string hardware_of(const Availability& found, const Inventory& inventory) {
  auto text =
      fmt::format("{}, {} logical CPUs", inventory.cpu_model, inventory.allowed_cpus.size());
  for (const auto& device : found.devices) {
    if (std::ranges::find(found.available, device.name()) == found.available.end()) continue;
    text += device.kind == DeviceKind::Cpu
                ? fmt::format("; {} cores", device.cpus.size())
                : fmt::format("; {} {}", device.model, device.uuid.value_or(device.name()));
  }
  return text;
}

Result<SweepDevices> check_sweep_devices(const CommandContext& context, const SweepConfig& config) {
  SweepDevices devices;
  const auto lists = named_devices(config);
  if (lists.empty()) return devices;
  const bool wants_gpus =
      std::ranges::any_of(lists, [](const NamedDevices& one) { return may_name_gpus(one.list); });
  const auto facts = MUSTER_TRY(look_at_devices(context, wants_gpus));
  const auto checks = checks_of(facts);
  const auto most = context.config.count(SettingId::DeviceCountMost);
  for (const auto& named : lists) {
    const auto& list = named.list;
    const auto at_place = [&named](const Error& error) {
      return Error{error.kind, fmt::format("{}: {}", named.place, error.message)};
    };
    const auto names = names_of(list, facts, context.config, config.is_remote());
    if (!names) return at_place(names.error());
    auto found =
        request_devices(*names, facts.inventory, context.config.count(SettingId::CoresPerDevice));
    if (!found) return at_place(found.error());
    if (!config.is_remote()) {
      MUSTER_TRY(check_count(context.config, named, found->requested.size()));
    }
    leave_out_unfit(*found, checks);
    add_lost_gpus(list, facts.inventory, *found, config.is_remote() ? std::nullopt : most);
    if (!config.is_remote()) devices.machines[list] = hardware_of(*found, facts.inventory);
    const auto point = as_point(*found);
    add_to(devices.all, point);
    devices.used[list] = used_devices(*names, point);
    devices.by_list[list] = point;
  }
  return devices;
}

Result<std::vector<Device>> fit_devices(const CommandContext& context, const std::string& list) {
  const auto facts = MUSTER_TRY(look_at_devices(context, may_name_gpus(list)));
  const auto names = MUSTER_TRY(names_of(list, facts, context.config, /*is_remote=*/false));
  auto found = MUSTER_TRY(
      request_devices(names, facts.inventory, context.config.count(SettingId::CoresPerDevice)));
  leave_out_unfit(found, checks_of(facts));
  const auto most = context.config.count(SettingId::DeviceCountMost);
  add_lost_gpus(list, facts.inventory, found, most);
  std::erase_if(found.devices, [&](const Device& device) {
    return std::ranges::find(found.available, device.name()) == found.available.end();
  });
  if (!found.devices.empty()) {
    const auto lost = lost_gpus_notice(list, facts.inventory, found.devices, most);
    if (lost) say(Tone::Warning, *lost, context.color);
    return found.devices;
  }
  return Error{ErrorKind::Unavailable,
               fmt::format("no device is fit: {}", fmt::join(as_point(found).errors, "; "))};
}

std::vector<std::string> availability_lines(const PointAvailability& availability) {
  if (availability.requested.empty()) return {"devices: none were asked for"};
  std::vector<std::string> lines{
      fmt::format("devices: {} requested, {} available{}", availability.requested.size(),
                  availability.available.size(), availability.all_available() ? ": all" : "")};
  for (const auto& error : availability.errors) lines.push_back("unavailable: " + error);
  return lines;
}

Status refuse_missing(const SweepConfig& config, const PointAvailability& availability) {
  if (availability.all_available()) return Done{};
  const auto key = config.is_given(SweepKey::DeviceIds) ? SweepKey::DeviceIds : SweepKey::Device;
  return Error{ErrorKind::NotFound,
               fmt::format("{}: {} of {} devices cannot be used: {}; --allow-missing measures "
                           "without",
                           config.place_of(key), availability.unavailable.size(),
                           availability.requested.size(), fmt::join(availability.errors, "; "))};
}

}  // namespace muster
