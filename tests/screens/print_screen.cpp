// One screen as text, made by the code that makes it for people, from what stands here or in a
// recording: the same in every run, so that it can be kept and compared.
//
//   print_screen WHAT WIDTH HEIGHT [RECORDING]
//
// WHAT: devices, top (of a RECORDING: its last moment); embed-report, embed-report-verbose,
// embed-start, embed-progress, doctor.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cli/doctor_view.h"
#include "cli/embed_report.h"
#include "cli/replay_source.h"
#include "terminal/progress.h"
#include "views/devices_view.h"
#include "views/top_view.h"

namespace muster {
namespace {

// A run over 63,666 texts on two halves of a CPU and two GPUs, one of which had to be restarted.
EmbedReport embed_report() {
  EmbedReport report;
  auto& progress = report.progress;
  progress.text_count = 63'666;
  progress.token_count = 1'331'044;
  progress.truncated_count = 12;
  progress.blank_count = 3;
  const auto add = [&](const char* name, std::uint64_t texts, std::uint64_t tokens, double busy,
                       std::uint32_t restarts) {
    auto& device = progress.devices.emplace_back();
    device.name = name;
    device.text_count = texts;
    device.token_count = tokens;
    device.busy_seconds = busy;
    device.ready_seconds = 34;
    device.restart_count = restarts;
    device.state = "ready";
  };
  add("cpu:0", 5'120, 107'000, 33.8, 0);
  add("cpu:1", 5'066, 106'044, 33.7, 0);
  add("cuda:0", 31'200, 652'000, 32.9, 0);
  add("cuda:1", 22'280, 466'000, 24.2, 1);
  report.time = {.read = 0.21,
                 .wait = 34.1,
                 .wait_for_writer = 0.1,
                 .other = 0.4,
                 .start = 2.6,
                 .tokenize = 0.94,
                 .write = 1.2};
  report.dim = 384;
  report.precision = Precision::Bf16;
  report.precision_reason =
      "measured: bf16 is 1.80x fp32 with cosine 0.99998 in the mean, 0.99992 at least";
  report.out = "notes.npy";
  report.index = "notes.npy.index.jsonl";
  report.total_seconds = 36.89;
  report.first_result_seconds = 2.9;
  report.parent_cpu_seconds = 2.4;
  report.worker_cpu_seconds = 66.0;
  return report;
}

ProgressView embed_progress(bool has_begun) {
  CorpusProgress progress = embed_report().progress;
  progress.input_size_total = 10'000'000;
  progress.input_size_read = 9'000'000;
  progress.read_count = 90'000;
  progress.read_token_count = 1'800'000;
  progress.devices[3].state = "restarting";
  if (!has_begun) {
    progress = {};
    progress.phase = "starting workers";
    for (const auto* name : {"cpu:0", "cpu:1", "cuda:0", "cuda:1"}) {
      auto& device = progress.devices.emplace_back();
      device.name = name;
      device.state = "starting";
    }
  }
  ProgressView view;
  view.reading = progress_reading(progress);
  view.elapsed_seconds = 2.3;
  if (!has_begun) return view;
  view.rates_per_second = {1'825.4, 36'135.2};
  view.lane_rates = {148.2, 146.9, 902.1, 628.2};
  view.remaining_seconds = 17.2;
  return view;
}

DoctorReport doctor_report() {
  DoctorReport report;
  report.machine = "here";
  report.checks = {
      {.name = "torch", .sentence = "torch 2.11.0 at /opt/torch"},
      {.name = "worker", .sentence = "muster-worker 0.1.0 at /opt/muster/bin"},
      {.name = "driver", .sentence = "NVIDIA 590.48.01, for CUDA up to 13.1"},
      {.name = "xid",
       .device = "cuda:1",
       .verdict = Verdict::Unfit,
       .sentence = "the driver reported XID 79 (2 times): the GPU has fallen off the bus",
       .advice = "drain the node and reset it; if it comes again, replace the GPU"},
      {.name = "ecc", .device = "cuda:0", .sentence = "nothing is wrong"},
      {.name = "memory", .device = "cuda:0", .sentence = "nothing is wrong"},
      {.name = "ecc", .device = "cuda:1", .sentence = "nothing is wrong"},
      {.name = "compute",
       .device = "cuda:0",
       .sentence = "exact products: fp32 51.2 Tflop/s, bf16 702 Tflop/s, fp16 698 Tflop/s"},
      {.name = "open_files",
       .verdict = Verdict::Warning,
       .sentence = "too few files may be open: 1024, and 2088 are needed",
       .advice = "raise the limit: ulimit -n 4096, or LimitNOFILE of the unit"},
      {.name = "links", .verdict = Verdict::NotApplicable, .sentence = "one GPU has no links"}};
  report.recommended = {{SettingId::Devices, "cuda:0", "not fit, or not here: cuda:1"}};
  return report;
}

Inventory host() {
  Inventory inventory;
  inventory.cpu_model = "AMD EPYC 9654 96-Core Processor";
  inventory.core_count = 8;
  inventory.numa_node_count = 2;
  for (std::uint32_t cpu = 0; cpu < 16; ++cpu) inventory.allowed_cpus.push_back(cpu);
  inventory.cpu_limit_cores = 7.5;
  inventory.memory_total_bytes = 1'536'000'000'000;
  inventory.memory_limit_bytes = 64'000'000'000;
  inventory.instruction_sets = {"avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16"};
  return inventory;
}

TopData last_moment(const std::string& recording) {
  const auto source = ReplaySource::open(recording);
  MUSTER_CHECK(source);
  (*source)->go_to_end();
  auto frame = (*source)->frame();
  MUSTER_CHECK(frame && *frame);
  return std::move(**frame);
}

std::string lines(const std::vector<std::string>& all) {
  std::string out;
  for (const auto& line : all) out += line + "\n";
  return out;
}

std::string screen(const std::string& what, const TerminalInfo& terminal,
                   const std::string& recording) {
  if (what == "embed-report") return describe_report(embed_report(), terminal, false);
  if (what == "embed-report-verbose") return describe_report(embed_report(), terminal, true);
  if (what == "embed-start") return lines(render_progress(embed_progress(false), terminal));
  if (what == "embed-progress") return lines(render_progress(embed_progress(true), terminal));
  if (what == "doctor") return doctor_text(doctor_report(), terminal, false);
  const auto data = last_moment(recording);
  if (what == "devices") {
    return describe_host(host(), terminal) + "\n" + describe_devices(data.snapshot, terminal);
  }
  Canvas canvas(terminal.width, terminal.height, terminal.characters());
  draw_top(data, {}, canvas);
  return canvas.text();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const muster::TerminalInfo terminal{.is_terminal = true,
                                      .can_redraw = true,
                                      .width = static_cast<std::size_t>(std::atoi(argv[2])),
                                      .height = static_cast<std::size_t>(std::atoi(argv[3])),
                                      .has_utf8 = true};
  fmt::print("{}", muster::screen(argv[1], terminal, argc > 4 ? argv[4] : ""));
  return 0;
}
