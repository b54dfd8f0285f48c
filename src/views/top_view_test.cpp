#include "views/top_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "terminal/text_width.h"
#include "views/snapshot_fixture.h"
#include "views/top_help.h"

namespace muster {
namespace {

struct Screen {
  std::string text;
  std::vector<std::string> lines;
  TopLayout layout;
};

struct Size {
  std::size_t width = 80;
  std::size_t height = 24;
};

Screen drawn(const TopData& data, const TopState& state = {}, Size size = {},
             CharacterSet characters = CharacterSet::Utf8) {
  Canvas canvas(size.width, size.height, characters);
  Screen screen;
  screen.layout = draw_top(data, state, canvas);
  screen.text = canvas.text();
  for (std::size_t begin = 0; begin < screen.text.size();) {
    const auto end = screen.text.find('\n', begin);
    screen.lines.push_back(screen.text.substr(begin, end - begin));
    begin = end + 1;
  }
  return screen;
}

bool has(const Screen& screen, std::string_view text) {
  return screen.text.find(text) != std::string::npos;
}

// 97 % of 7 columns are 54.3 eighths, 43.75 % are 24.5; 34 of 256 GB are what no program could get.
TEST(TopView, ShowsADeviceALine) {
  auto data = frame_of(machine_of(1));
  data.snapshot.devices[0].processes = {{4711, "python3", 70'000'000'000, GpuProcessKind::Compute}};
  data.trends[0].nvlink_bytes_per_second = 12.3e9;
  EXPECT_EQ(drawn(data, {}, {80, 9}).text,
            R"(muster top  here  1 GPU  busy 97 %  mem 98/151 GB  627 W                14:02:31
driver 590.48.01  host mem 34/256 GB
DEVICE NAME       BUSY          SM/TC%  MEM GB W/LIMIT C/LEFT CLK% WHY NVL/s OK?
cuda:0 H200         97 ██████▊   91/62  98/151 627/700  52/35  100       12G ok
cpu:0  EPYC 9654…   44 ███▏          -  34/256       -      -    -         - -
      PID DEVICE   GPU MEM KIND     COMMAND
     4711 cuda:0   70.0 GB compute  python3

q quit  ? help  s sort: device  / filter  p processes  e energy  k end
)");
}

TEST(TopView, ShowsEightGpusOn80x24WithoutScrolling) {
  const auto screen = drawn(frame_of(machine_of(8)));
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(has(screen, "cuda:" + std::to_string(i) + " "));
  EXPECT_TRUE(has(screen, "cpu:0"));
  EXPECT_FALSE(has(screen, "PageDown"));
}

TEST(TopView, SaysInItsLineWhyADeviceIsDown) {
  auto snapshot = machine_of(2);
  take_down(snapshot.devices[1], "hung in nvmlDeviceGetFieldValues for 3 s");
  const auto screen = drawn(frame_of(snapshot));
  EXPECT_TRUE(has(screen, "DOWN hung in nvmlDeviceGetFieldValues for 3 s\n"));
  EXPECT_TRUE(has(screen, "1 of 2 GPUs up"));
  EXPECT_FALSE(has(screen, "unfit"));  // once is enough
}

TEST(TopView, ShowsWhatIsWrongFirst) {
  auto snapshot = machine_of(3);
  snapshot.devices[0].health.push_back({"memory", HealthState::Warning, "memory is 97 % full"});
  snapshot.devices[2].health.push_back({"xid", HealthState::Unfit, "XID 79 was reported"});
  auto data = frame_of(snapshot);
  data.trends[1].why_slow = "power cap 62 % of the last minute";
  const auto screen = drawn(data);
  ASSERT_GT(screen.lines.size(), 5U);
  EXPECT_EQ(screen.lines[2], "cuda:2 unfit: XID 79 was reported");
  EXPECT_EQ(screen.lines[3], "cuda:0 warning: memory is 97 % full");
  EXPECT_EQ(screen.lines[4], "cuda:1: power cap 62 % of the last minute");
  EXPECT_TRUE(has(screen, " X1"));
  EXPECT_TRUE(has(screen, " !1"));
}

TEST(TopView, LetsNotesNotPushTheDevicesOut) {
  auto data = frame_of(machine_of(8));
  for (auto& trend : data.trends) trend.why_slow = "power cap 62 % of the last minute";
  const auto screen = drawn(data);
  EXPECT_EQ(screen.lines[4], "cuda:2: power cap 62 % of the last minute");
  EXPECT_EQ(screen.lines[5], "and 6 more");
  EXPECT_TRUE(has(screen, "cuda:7 H200"));
}

TEST(TopView, NamesTheReasonsOfConcernFirst) {
  auto data = frame_of(machine_of(1));
  // Idle, power cap, software and hardware slowdown by temperature: one T for both.
  data.snapshot.devices[0].readings.set(Reading::GpuClockEvents, 0x1 | 0x4 | 0x20 | 0x40);
  EXPECT_TRUE(has(drawn(data), " 100 PTi "));
}

TEST(TopView, PagesThroughManyDevices) {
  const auto data = frame_of(machine_of(64));
  const auto first = drawn(data);
  EXPECT_TRUE(has(first, "cuda:0 "));
  EXPECT_TRUE(has(first, "devices 1 to 14 of 65; PageDown goes on"));
  TopState state;
  state.device = 20;
  const auto second = drawn(data, state);
  EXPECT_TRUE(has(second, "cuda:20 "));
  EXPECT_FALSE(has(second, "cuda:13 "));
  EXPECT_TRUE(has(second, "devices 15 to 28 of 65"));
}

TEST(TopView, SaysWhyThereIsNoGpu) {
  const auto screen = drawn(frame_of(machine_of(0)));
  EXPECT_TRUE(has(screen, "muster top  here  1 CPU, 4 cores  busy 44 %  mem 34/256 GB"));
  EXPECT_TRUE(has(screen, "no GPU: no NVIDIA driver (libnvidia-ml.so.1)"));
  EXPECT_TRUE(has(screen, "cpu:0"));
  EXPECT_FALSE(has(screen, "PID")) << "nobody has looked for processes";
  EXPECT_FALSE(has(screen, "SM/TC%")) << "no CPU has any";
}

TEST(TopView, PutsSlicesBelowTheirGpu) {
  auto snapshot = machine_of(2);
  snapshot.devices.insert(snapshot.devices.begin() + 1, h200_slice(0, 0));
  const auto screen = drawn(frame_of(snapshot));
  EXPECT_TRUE(has(screen, "cuda:0:0 1g.18gb "));
  EXPECT_TRUE(has(screen, "2 GPUs  busy 97 %  mem 196/302 GB"));  // a slice is counted in its GPU
}

// A machine with as many processes as any has.
TopData with_processes(TelemetrySnapshot snapshot) {
  for (std::uint32_t i = 0; i < 100; ++i) {
    HostProcess process;
    process.pid = 1000 + i;
    process.command = "process-" + std::to_string(i);
    process.cores = i == 0 ? 1.87 : 0;
    process.memory_bytes = 42'000'000;
    snapshot.processes.push_back(std::move(process));
  }
  return frame_of(std::move(snapshot));
}

TEST(TopView, FillsALargeScreen) {
  for (const std::uint32_t gpus : {0U, 8U}) {
    for (const auto size : {Size{80, 24}, Size{120, 40}, Size{200, 50}}) {
      const auto screen = drawn(with_processes(machine_of(gpus)), {}, size);
      EXPECT_EQ(screen.lines.size(), size.height);
      EXPECT_EQ(std::count(screen.lines.begin(), screen.lines.end(), ""), 0) << screen.text;
    }
  }
  // Without processes of the host, too, plots take the rows.
  auto snapshot = machine_of(8);
  snapshot.devices[0].processes = {{4711, "python3", 70'000'000'000, GpuProcessKind::Compute}};
  const auto screen = drawn(frame_of(snapshot), {}, {200, 50});
  EXPECT_EQ(std::count(screen.lines.begin(), screen.lines.end(), ""), 0) << screen.text;
}

// Idle, half, all and a quarter of the time, on bars of 33 columns.
TEST(TopView, ShowsABarForEachCore) {
  const auto screen = drawn(frame_of(machine_of(0)));
  EXPECT_TRUE(has(screen, "CORES, 4\n"));
  const auto row = std::find(screen.lines.begin(), screen.lines.end(), "CORES, 4") + 1;
  ASSERT_LE(row + 4, screen.lines.end());
  EXPECT_EQ(row[0], "   0" + std::string(37, ' ') + "0%");
  EXPECT_EQ(row[2].find("   2 █"), 0U);
  EXPECT_EQ(display_width(row[2]), 43U);
  EXPECT_TRUE(row[1].ends_with(" 50%"));
}

TEST(TopView, ShowsManyCoresAsMarks) {
  auto snapshot = machine_of(0);
  auto& cpu = snapshot.devices[0];
  cpu.identity.device.cpus.clear();
  cpu.core_loads.clear();
  for (std::uint32_t i = 0; i < 192; ++i) {
    cpu.identity.device.cpus.push_back(i);
    cpu.core_loads.push_back(i % 2 == 0 ? 1.0F : 0.0F);
  }
  const auto screen = drawn(frame_of(snapshot));
  EXPECT_TRUE(has(screen, "CORES, 192\n   0 █▁█▁"));
  EXPECT_TRUE(has(screen, "\n  75 ▁█▁█")) << screen.text;
}

TEST(TopView, PlotsTheChosenDeviceElseAllGpus) {
  const auto data = frame_of(machine_of(8));
  const auto all = drawn(data, {}, {120, 40});
  EXPECT_TRUE(has(all, "BUSY 97 % of all 8 GPUs"));
  EXPECT_TRUE(has(all, "MEMORY 65 % of all 8 GPUs, 784/1206 GB"));  // 98 of 150.75 GB each
  TopState state;
  state.device = 8;
  const auto one = drawn(data, state, {120, 40});
  EXPECT_TRUE(has(one, "BUSY 97 % of cpu:0"));
  EXPECT_TRUE(has(one, "AMD EPYC 9654 96-Core Processor  4 cores  NUMA node 0"));
}

TEST(TopView, PrintsNoPlotBeforeThereIsAHistory) {
  auto data = frame_of(machine_of(1));
  for (auto& trend : data.trends) {
    trend.busy.assign(kTrendSeconds, std::nullopt);
    trend.memory.assign(kTrendSeconds, std::nullopt);
  }
  TopState state;
  EXPECT_TRUE(has(drawn(data, state, {120, 40}), "of cuda:0"));
  state.has_keys = false;
  EXPECT_FALSE(has(drawn(data, state, {120, 40}), "of cuda:0"));
}

TEST(TopView, NamesWhatAWorkerDoes) {
  auto snapshot = machine_of(0);
  HostProcess worker;
  worker.pid = 7311;
  worker.command = "muster-worker";
  worker.cores = 1.87;
  worker.memory_bytes = 412'000'000;
  worker.device = "cpu:0";
  worker.models = "all-MiniLM-L6-v2";
  snapshot.processes = {worker};
  EXPECT_TRUE(has(drawn(frame_of(snapshot)),
                  "      PID  CPU%  MEMORY DEVICE   COMMAND\n"
                  "     7311   187  412 MB cpu:0    muster-worker all-MiniLM-L6-v2\n"));
}

// 40 columns less PID (9), CPU% (5), MEMORY (7) and a space behind each leave 16.
TEST(TopView, KeepsCommandsReadableOnANarrowScreen) {
  auto snapshot = machine_of(0);
  HostProcess worker;
  worker.pid = 7311;
  worker.command = "muster-worker";
  worker.cores = 1.87;
  worker.memory_bytes = 412'000'000;
  worker.device = "cpu:0";
  worker.models = "all-MiniLM-L6-v2";
  HostProcess other = worker;
  other.pid = 7312;
  other.command = "text-embeddings-router";
  other.device.clear();
  other.models.clear();
  snapshot.processes = {worker, other};
  EXPECT_TRUE(has(drawn(frame_of(snapshot), {}, {40, 24}),
                  "      PID  CPU%  MEMORY COMMAND\n"
                  "     7311   187  412 MB muster-worker…\n"
                  "     7312   187  412 MB text-embeddings…\n"))
      << drawn(frame_of(snapshot), {}, {40, 24}).text;
}

// Of 40 columns the first three and their spaces leave 15; MEMORY and GPU MEM have left.
TEST(TopView, KeepsTheDeviceOfAGpuProcessLonger) {
  auto snapshot = machine_of(1);
  snapshot.devices[0].processes = {{4711, "python3", 70'000'000'000, GpuProcessKind::Compute}};
  HostProcess process;
  process.pid = 4711;
  process.command = "python3";
  process.cores = 0.5;
  process.memory_bytes = 42'000'000;
  snapshot.processes = {process};
  EXPECT_TRUE(has(drawn(frame_of(snapshot), {}, {40, 24}),
                  "      PID  CPU% DEVICE   COMMAND\n"
                  "     4711    50 cuda:0   python3\n"))
      << drawn(frame_of(snapshot), {}, {40, 24}).text;
  EXPECT_TRUE(has(drawn(frame_of(snapshot), {}, {56, 24}),
                  "      PID  CPU%  MEMORY DEVICE   GPU MEM COMMAND\n"));
  EXPECT_TRUE(
      has(drawn(frame_of(snapshot), {}, {55, 24}), "      PID  CPU% DEVICE   GPU MEM COMMAND\n"));
}

TEST(TopView, DropsWhatIsNoNews) {
  auto snapshot = machine_of(1);
  auto& readings = snapshot.devices[0].readings;
  readings.set(Reading::GpuEccCorrectedVolatile, 0);
  readings.set(Reading::GpuEccUncorrectedVolatile, 0);
  snapshot.collector.rss_bytes = 5'730'000;
  auto data = frame_of(snapshot);
  data.sampler_cores = 0.0016;
  TopState state;
  state.device = 0;
  const auto quiet = drawn(data, state);
  EXPECT_TRUE(has(quiet, "GPU-00000000-0000-0000-0000-000000000000")) << "of the chosen device";
  EXPECT_FALSE(has(quiet, "sampler"));
  EXPECT_FALSE(has(quiet, "ECC"));
  data.snapshot.devices[0].readings.set(Reading::GpuEccCorrectedVolatile, 3);
  data.snapshot.collector.ticks[0].missed = 12;
  const auto loud = drawn(data, state, {120, 40});
  EXPECT_TRUE(has(loud, "sampler: 12 readings missed"));
  EXPECT_TRUE(has(loud, "ECC errors: 3 corrected, 0 not"));
}

TEST(TopView, ALostDeviceIsNotCalledHidden) {
  auto data = frame_of(machine_of(1));
  auto& gpu = data.snapshot.devices[0];
  gpu.identity.cuda_ordinal.reset();
  TopState state;
  state.device = 0;
  EXPECT_TRUE(has(drawn(data, state, {120, 40}), "hidden from CUDA"));
  gpu.lost_reason = "GPU is lost (NVML 15)";
  EXPECT_FALSE(has(drawn(data, state, {120, 40}), "hidden from CUDA"));
}

TEST(TopView, SaysThatAScreenIsTooSmall) {
  EXPECT_EQ(drawn(frame_of(machine_of(8)), {}, {20, 5}).text,
            "too small: muster\ntop needs 40 x 8,\nthis is 20 x 5; q\nquits\n");
  EXPECT_TRUE(drawn(frame_of(machine_of(8)), {}, {80, 7}).text.starts_with("too small"));
  EXPECT_TRUE(has(drawn(frame_of(machine_of(8)), {}, {40, 8}), "cuda:0"));
}

TEST(TopView, IsNeverWiderThanTheScreen) {
  auto snapshot = machine_of(3);
  snapshot.machine = std::string(300, 'm');
  snapshot.devices[0].identity.device.model = "漢字漢字漢字漢字漢字漢字漢字漢字";
  snapshot.devices[0].processes = {{1, std::string(300, 'x'), {}, GpuProcessKind::Compute}};
  take_down(snapshot.devices[1], std::string(300, 'r'));
  const auto data = frame_of(snapshot);
  for (const auto page : {TopPage::Devices, TopPage::Energy, TopPage::Processes, TopPage::Help}) {
    for (std::size_t width = 1; width < 140; width += 3) {
      for (const std::size_t height : {1U, 2U, 3U, 5U, 24U}) {
        TopState state;
        state.page = page;
        const auto screen = drawn(data, state, {width, height});
        EXPECT_LE(screen.lines.size(), height);
        for (const auto& line : screen.lines) EXPECT_LE(display_width(line), width);
      }
    }
  }
}

TEST(TopView, KeepsToAsciiAndLetsNothingFromOutsideMoveTheCursor) {
  auto snapshot = machine_of(1);
  snapshot.devices[0].processes = {{1, "évil\x1b[2J\n", {}, GpuProcessKind::Compute}};
  const auto screen = drawn(frame_of(snapshot), {}, {120, 40}, CharacterSet::Ascii);
  EXPECT_TRUE(has(screen, "?vil [2J"));
  EXPECT_TRUE(std::all_of(screen.text.begin(), screen.text.end(), [](char letter) {
    return letter == '\n' || (letter >= ' ' && letter <= '~');
  }));
}

TEST(TopView, AsksBeforeAProcessIsEnded) {
  TopState state;
  state.question = SignalQuestion{4711, "python3"};
  EXPECT_EQ(drawn(frame_of(machine_of(1)), state).lines.back(),
            "4711 python3: y sends SIGTERM, 9 sends SIGKILL, any other key nothing");
}

TEST(TopView, SaysWhereAReplayStands) {
  auto data = frame_of(machine_of(1));
  data.replay = ReplayPlace{.index = 11, .count = 600, .is_playing = true, .speed = 4};
  const auto screen = drawn(data);
  EXPECT_TRUE(has(screen, "replay 12/600 x4\n"));
  EXPECT_TRUE(has(screen, "left/right step"));
}

TEST(TopView, TellsTheMouseWhereThingsStand) {
  const auto layout = drawn(frame_of(machine_of(2))).layout;
  EXPECT_EQ(layout.title_row, 2U);
  ASSERT_EQ(layout.lines.size(), 3U);
  EXPECT_EQ(layout.lines[1].row, 4U);
  EXPECT_EQ(layout.lines[1].device, 1U);
  ASSERT_FALSE(layout.titles.empty());
  EXPECT_EQ(layout.titles[0].begin, 0U);
  EXPECT_EQ(layout.titles[0].end, 6U);
  EXPECT_EQ(layout.titles[0].key, SortKey::Device);
}

TEST(TopHelp, FitsOnASmallScreen) {
  EXPECT_LE(help_lines().size(), 21U);
  for (const auto& line : help_lines()) EXPECT_LE(display_width(line), 80U) << line;
}

}  // namespace
}  // namespace muster
