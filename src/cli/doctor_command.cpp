// Examines first, then tests by computing, then judges all facts at once. Devices that the facts
// alone show to be unfit are left out of the compute tests, where they could hang; the checks are
// made a second time with what the tests found. When devices were named, checks that concern none
// of them are dropped.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/build_info.h"
#include "cli/command.h"
#include "cli/doctor_facts.h"
#include "cli/doctor_view.h"
#include "cli/sweep/availability_check.h"
#include "cli/telemetry_options.h"
#include "doctor/checks.h"
#include "doctor/compute_product.h"
#include "terminal/terminal_info.h"

namespace muster {
namespace {

CommandSpec doctor_spec() {
  return {
      .name = "doctor",
      .summary = "find what is wrong with this machine and its devices",
      .usage = "",
      .groups = {{"What to examine",
                  {SettingId::Devices, SettingId::CoresPerDevice},
                  {{"--no-compute", "", "leave out the matrix products on each device"}}},
                 watched_machine_flags(),
                 {"Places", {SettingId::TorchRoot, SettingId::WorkerProgram, SettingId::CacheDir}},
                 {"Output",
                  {},
                  {{"--all", "", "every check in full, those that are well too"},
                   {"--json", "", "the report as a JSON object"},
                   {"--recommend", "", "nothing but the recommended settings, for --config"}}}},
      .examples =
          "  muster doctor\n"
          "  muster doctor --no-compute --json | jq .availability\n"
          "  muster doctor --recommend > muster.yaml\n"
          "\n"
          "The exit code is 0 where all is well, 20 with warnings, and 21 where a device or\n"
          "a program is unfit.\n",
  };
}

// Checks of the machine that matter to GPUs alone.
constexpr std::array<std::string_view, 5> kGpuChecks{"driver", "driver_cuda", "visible_devices",
                                                     "links", "cuda_libraries"};

// A missing driver is no fault for somebody who asked about CPUs.
bool concerns_any(const Check& check, const std::vector<std::string>& requested) {
  const bool is_of_gpus = check.device.empty() && std::find(kGpuChecks.begin(), kGpuChecks.end(),
                                                            check.name) != kGpuChecks.end();
  const bool has_only_cpus =
      std::all_of(requested.begin(), requested.end(),
                  [](const std::string& name) { return name.starts_with("cpu"); });
  if (is_of_gpus && has_only_cpus) return false;
  return std::any_of(requested.begin(), requested.end(),
                     [&](const std::string& name) { return concerns(check, name); });
}

std::vector<Device> devices_to_test(const Availability& availability) {
  std::vector<Device> devices;
  for (const auto& device : availability.devices) {
    const auto& fit = availability.available;
    if (std::find(fit.begin(), fit.end(), device.name()) != fit.end()) devices.push_back(device);
  }
  return devices;
}

void make_compute_tests(const CommandContext& context, const Availability& availability,
                        Examination& examination) {
  auto& facts = examination.facts;
  if (context.arguments.has("--no-compute")) {
    facts.compute_left_out = "left out by --no-compute";
  } else if (facts.is_simulated) {
    facts.compute_left_out = "simulated devices do not compute";
  } else if (!facts.torch || !facts.worker || facts.worker->build != facts.build) {
    facts.compute_left_out = "there is no torch or no worker of this build to compute with";
  } else if (devices_to_test(availability).empty()) {
    facts.compute_left_out = "no fit device was asked for";
  } else {
    ComputeTestOptions options;
    options.worker_program = facts.worker->program;
    options.torch_root = facts.torch->root;
    options.build = facts.build;
    if (context.terminal(STDERR_FILENO).is_terminal) {
      options.on_start = [](const std::string& device) {
        fmt::print(stderr, "muster: computing on {}\n", device);
      };
    }
    if (examination.collector) {
      options.on_tick = [&] { merge_worse_findings(*examination.collector, facts); };
    }
    facts.compute = test_devices(devices_to_test(availability), options, context.clock);
  }
}

// Availability is worked out before the tests and once more after them: only fit devices are
// tested, and a test may show that one is not.
Result<DoctorReport> make_report(const CommandContext& context) {
  const auto list = context.config.text(SettingId::Devices).value_or("auto");
  auto examination = MUSTER_TRY(examine(context));
  auto& facts = examination.facts;
  DoctorReport report;
  report.machine = facts.snapshot.machine;
  report.availability = MUSTER_TRY(
      request_devices(list, facts.inventory, context.config.count(SettingId::CoresPerDevice)));
  add_lost_gpus(list, facts.inventory, report.availability);
  const auto requested = check_requested(report.availability);
  // A first time for the devices that need no test: they are unfit already.
  auto fit = report.availability;
  leave_out_unfit(fit, check_all(facts));
  make_compute_tests(context, fit, examination);
  report.checks = check_all(facts);
  report.checks.insert(report.checks.begin(), requested.begin(), requested.end());
  if (list != "auto") {
    std::erase_if(report.checks, [&](const Check& check) {
      return !concerns_any(check, report.availability.requested);
    });
  }
  leave_out_unfit(report.availability, report.checks);
  report.recommended = recommend_settings(facts, report.availability);
  report.compute = std::move(facts.compute);
  return report;
}

Result<int> run_doctor(const CommandContext& context) {
  const auto report = MUSTER_TRY(make_report(context));
  const auto& arguments = context.arguments;
  std::string text;
  if (arguments.has("--json")) {
    text = doctor_json(report);
  } else if (arguments.has("--recommend")) {
    text = recommendation_yaml(report.recommended);
  } else {
    text = doctor_text(report, context.terminal(STDOUT_FILENO), arguments.has("--all"));
  }
  MUSTER_TRY(context.output.append(text));
  return doctor_exit_code(overall_verdict(report.checks));
}

}  // namespace

Command doctor_command() { return {doctor_spec(), run_doctor}; }

}  // namespace muster
