#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "fake_nvml/nvml_abi.h"
#include "fake_nvml/scenario_parts.h"

namespace muster::fake_nvml {
namespace {

struct Named {
  std::string_view name;
  std::uint64_t value;
};

/// The value of a name in a table; complains with all names.
template <std::size_t size>
Result<std::uint64_t> read_name(const Field& field, const std::array<Named, size>& table) {
  const auto text = MUSTER_TRY(field.text());
  std::string names;
  for (const auto& row : table) {
    if (row.name == text) return row.value;
    names += names.empty() ? "" : ", ";
    names += row.name;
  }
  return field.must_be("one of " + names);
}

// Source: nvml.h 13.3, nvmlClocksEventReason*.
constexpr std::array kReasons{Named{"applications_clocks", 0x2}, Named{"sw_power_cap", 0x4},
                              Named{"hw_slowdown", 0x8},         Named{"sync_boost", 0x10},
                              Named{"sw_thermal", 0x20},         Named{"hw_thermal", 0x40},
                              Named{"hw_power_brake", 0x80},     Named{"display_clocks", 0x100}};
constexpr std::array kEvents{Named{"xid", kEventXid}, Named{"double_bit_ecc", kEventDoubleBitEcc},
                             Named{"recovery_action", kEventRecoveryAction}};
constexpr std::array kKinds{Named{"compute", static_cast<std::uint64_t>(ProcessKind::Compute)},
                            Named{"graphics", static_cast<std::uint64_t>(ProcessKind::Graphics)},
                            Named{"mps", static_cast<std::uint64_t>(ProcessKind::Mps)}};

Result<Throttle> read_throttle(const Field& field) {
  static constexpr std::array<std::string_view, 5> kKeys{"reason", "from", "until", "period",
                                                         "duty"};
  MUSTER_TRY(field.check_keys(kKeys));
  const auto reason = field.child("reason");
  if (!reason) return field.must_be("an object with reason");
  Throttle throttle;
  const auto bit = MUSTER_TRY(read_name(*reason, kReasons));
  throttle.bit = static_cast<std::uint32_t>(bit);
  const auto span = MUSTER_TRY(read_span(field));
  if (field.child("period")) {
    if (field.child("from") || field.child("until")) {
      return field.must_be("without from and until where it has a period");
    }
    Curve::Square square;
    MUSTER_TRY(field.read("period", square.period, 1e-3));
    MUSTER_TRY(field.read("duty", square.duty, 1e-6, 1 - 1e-6));
    throttle.curve = Curve::square(square);
    return throttle;
  }
  if (field.child("duty")) return field.must_be("with a period where it has a duty");
  std::vector<Curve::Point> points;
  if (span.from > 0) points.push_back({0, 0});
  points.push_back({span.from, 1});
  if (span.until) points.push_back({*span.until, 0});
  throttle.curve = Curve::steps(points, 0);
  return throttle;
}

Result<FakeProcess> read_process(const Field& field) {
  static constexpr std::array<std::string_view, 8> kKeys{
      "pid", "name", "memory_bytes", "kind", "from", "until", "gpu_instance", "compute_instance"};
  MUSTER_TRY(field.check_keys(kKeys));
  FakeProcess process;
  if (!field.child("pid")) return field.must_be("an object with pid");
  MUSTER_TRY(field.read("pid", process.pid));
  MUSTER_TRY(field.read("name", process.name));
  process.memory_bytes = 0;
  if (const auto memory = field.child("memory_bytes")) {
    if (memory->json().is_null()) {
      process.memory_bytes.reset();
    } else {
      process.memory_bytes = MUSTER_TRY(memory->integer());
    }
  }
  if (const auto kind = field.child("kind")) {
    const auto value = MUSTER_TRY(read_name(*kind, kKinds));
    process.kind = static_cast<ProcessKind>(value);
  }
  process.span = MUSTER_TRY(read_span(field));
  MUSTER_TRY(field.read("gpu_instance", process.gpu_instance));
  MUSTER_TRY(field.read("compute_instance", process.compute_instance));
  return process;
}

Result<FakeEvent> read_event(const Field& field, bool is_xid) {
  static constexpr std::array<std::string_view, 2> kXidKeys{"at", "xid"};
  static constexpr std::array<std::string_view, 3> kEventKeys{"at", "kind", "data"};
  if (is_xid) {
    MUSTER_TRY(field.check_keys(kXidKeys));
  } else {
    MUSTER_TRY(field.check_keys(kEventKeys));
  }
  FakeEvent event;
  event.type = kEventXid;
  MUSTER_TRY(field.read("at", event.at));
  MUSTER_TRY(field.read(is_xid ? "xid" : "data", event.data));
  if (const auto kind = field.child("kind")) event.type = MUSTER_TRY(read_name(*kind, kEvents));
  return event;
}

Status read_functions(const Field& field, const Fault& fault, Scenario& scenario) {
  const auto functions = field.child("functions");
  if (!functions) {
    // What concerns a device; not the start and the end, so that a program can find the GPU.
    for (std::size_t i = 0; i < kFunctionCount; ++i) {
      if (kFunctionNames[i].starts_with("nvmlDevice") || kFunctionNames[i].starts_with("nvmlGpm")) {
        scenario.faults[i].push_back(fault);
      }
    }
    return Done{};
  }
  const auto items = MUSTER_TRY(functions->items());
  for (const auto& item : items) {
    const auto name = MUSTER_TRY(item.text());
    const auto function = find_function(name);
    if (!function) {
      return item.must_be(fmt::format("a function that is here, which {} is not", name));
    }
    scenario.faults[static_cast<std::size_t>(*function)].push_back(fault);
  }
  return Done{};
}

Result<Fault> read_error(const Field& field, const std::vector<std::uint32_t>& gpus) {
  Fault fault{FaultKind::Error, 0, {}, gpus};
  if (!field.json().is_object()) {
    fault.code = MUSTER_TRY(read_code(field));
    return fault;
  }
  static constexpr std::array<std::string_view, 3> kKeys{"code", "from", "until"};
  MUSTER_TRY(field.check_keys(kKeys));
  const auto code = field.child("code");
  if (!code) return field.must_be("an object with code");
  fault.code = MUSTER_TRY(read_code(*code));
  fault.span = MUSTER_TRY(read_span(field));
  return fault;
}

Status read_errors(const Field& field, const std::vector<std::uint32_t>& gpus, Scenario& scenario) {
  const auto members = MUSTER_TRY(field.members());
  for (const auto& [name, value] : members) {
    const auto function = find_function(name);
    if (!function) {
      const std::vector<std::string> names(kFunctionNames.begin(), kFunctionNames.end());
      const auto nearest = nearest_name(name, names);
      return field.must_be(fmt::format("by functions that are here, which {} is not{}", name,
                                       nearest ? ": did you mean " + *nearest + "?" : ""));
    }
    auto fault = MUSTER_TRY(read_error(value, gpus));
    scenario.faults[static_cast<std::size_t>(*function)].push_back(std::move(fault));
  }
  return Done{};
}

/// The number of a field, which is the name of a member of `field`.
Result<std::uint32_t> read_field_number(const Field& field, const std::string& name) {
  const bool is_number =
      !name.empty() && name.size() < 5 && name.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number) return field.must_be("by numbers of fields, as \"186\"");
  return static_cast<std::uint32_t>(std::stoul(name));
}

Status read_field_errors(const Field& field, const std::vector<std::uint32_t>& gpus,
                         Scenario& scenario) {
  const auto members = MUSTER_TRY(field.members());
  for (const auto& [name, value] : members) {
    const auto number = MUSTER_TRY(read_field_number(field, name));
    auto fault = MUSTER_TRY(read_error(value, gpus));
    scenario.field_faults[number].push_back(fault);
  }
  return Done{};
}

Status read_field_delays(const Field& field, FakeGpu& gpu) {
  const auto members = MUSTER_TRY(field.members());
  for (const auto& [name, value] : members) {
    const auto number = MUSTER_TRY(read_field_number(field, name));
    gpu.field_delays_us[number] = MUSTER_TRY(value.number(0, kDelayMaxUs));
  }
  return Done{};
}

}  // namespace

Status read_happenings(const Field& field, FakeGpu& gpu) {
  if (const auto throttles = field.child("throttle")) {
    const auto items = MUSTER_TRY(throttles->items());
    for (const auto& item : items) {
      auto throttle = MUSTER_TRY(read_throttle(item));
      gpu.throttles.push_back(std::move(throttle));
    }
  }
  if (const auto processes = field.child("processes")) {
    const auto items = MUSTER_TRY(processes->items());
    for (const auto& item : items) {
      auto process = MUSTER_TRY(read_process(item));
      gpu.processes.push_back(std::move(process));
    }
  }
  for (const std::string_view key : {"xids", "events"}) {
    const auto events = field.child(key);
    if (!events) continue;
    const auto items = MUSTER_TRY(events->items());
    for (const auto& item : items) {
      const auto event = MUSTER_TRY(read_event(item, key == "xids"));
      gpu.events.push_back(event);
    }
  }
  std::stable_sort(gpu.events.begin(), gpu.events.end(),
                   [](const FakeEvent& a, const FakeEvent& b) { return a.at < b.at; });
  if (const auto lost = field.child("lost")) {
    static constexpr std::array<std::string_view, 2> kKeys{"from", "until"};
    MUSTER_TRY(lost->check_keys(kKeys));
    gpu.lost = MUSTER_TRY(read_span(*lost));
  }
  if (const auto delays = field.child("field_delays_us")) {
    MUSTER_TRY(read_field_delays(*delays, gpu));
  }
  return Done{};
}

Status read_faults(const Field& field, const std::vector<std::uint32_t>& gpus, Scenario& scenario) {
  static constexpr std::array<std::string_view, 3> kKeys{"from", "until", "functions"};
  for (const auto kind : {FaultKind::Hang, FaultKind::Crash}) {
    const auto fault = field.child(kind == FaultKind::Hang ? "hang" : "crash");
    if (!fault) continue;
    MUSTER_TRY(fault->check_keys(kKeys));
    const auto span = MUSTER_TRY(read_span(*fault));
    MUSTER_TRY(read_functions(*fault, Fault{kind, 0, span, gpus}, scenario));
  }
  if (const auto errors = field.child("errors")) MUSTER_TRY(read_errors(*errors, gpus, scenario));
  if (const auto errors = field.child("field_errors")) {
    MUSTER_TRY(read_field_errors(*errors, gpus, scenario));
  }
  return Done{};
}

}  // namespace muster::fake_nvml
