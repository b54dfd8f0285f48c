#include "views/top_state.h"

#include <gtest/gtest.h>

#include <string>

#include "views/snapshot_fixture.h"

namespace muster {
namespace {

using Indices = std::vector<std::uint32_t>;

InputEvent key(char32_t character) { return {InputKind::Character, character}; }

class TopKeys : public ::testing::Test {
 protected:
  TopRequestKind press(const InputEvent& event) {
    return handle_input(state_, event, layout_, data_).kind;
  }
  TopRequestKind press(InputKind kind) { return press(InputEvent{kind}); }
  void type(std::string_view text) {
    for (const char letter : text) press(key(static_cast<unsigned char>(letter)));
  }

  TopData data_ = frame_of(machine_of(3));
  TopLayout layout_{.title_row = 2, .titles = {}, .lines = {}, .page_size = 2};
  TopState state_;
};

TEST_F(TopKeys, QuitsOnlyWhenNoTextIsTyped) {
  type("/q");
  EXPECT_EQ(state_.filter, "q");
  press(InputKind::Enter);
  EXPECT_EQ(press(key('q')), TopRequestKind::Quit);
}

TEST_F(TopKeys, FiltersByWholeCharacters) {
  press(key('/'));
  press(key(U'é'));
  press(key(U'漢'));
  EXPECT_EQ(state_.filter, "é漢");
  press(InputKind::Backspace);
  EXPECT_EQ(state_.filter, "é");
  press(InputKind::Escape);
  EXPECT_EQ(state_.filter, "");
  EXPECT_FALSE(state_.is_typing_filter);
}

TEST_F(TopKeys, ChoosesDevicesWithinTheList) {
  press(InputKind::Down);
  EXPECT_EQ(state_.device, 0U);
  press(InputKind::PageDown);
  EXPECT_EQ(state_.device, 2U);
  press(InputKind::End);
  EXPECT_EQ(state_.device, 3U);  // cpu:0
  press(InputKind::Down);
  EXPECT_EQ(state_.device, 3U);
  press(InputKind::Home);
  EXPECT_EQ(state_.device, 0U);
  press(InputKind::Escape);
  EXPECT_EQ(state_.device, std::nullopt);
  press(InputKind::Up);
  EXPECT_EQ(state_.device, 3U);
}

TEST_F(TopKeys, ChoosesAProcessOfSeveralDevicesOnce) {
  data_.snapshot.devices[0].processes = {{10, "a", 5, GpuProcessKind::Compute}};
  data_.snapshot.devices[1].processes = {{10, "a", 4, GpuProcessKind::Compute},
                                         {11, "b", 3, GpuProcessKind::Compute}};
  press(key('p'));
  press(InputKind::Down);
  EXPECT_EQ(state_.pid, 10U);
  press(InputKind::Down);
  EXPECT_EQ(state_.pid, 11U);
}

TEST_F(TopKeys, SendsASignalOnlyAfterASecondKey) {
  data_.snapshot.devices[0].processes = {{10, "train", 5, GpuProcessKind::Compute}};
  EXPECT_EQ(press(key('k')), TopRequestKind::None);
  EXPECT_EQ(state_.notice, "choose a process first: p, then the arrows");
  press(key('p'));
  press(InputKind::Down);
  EXPECT_EQ(press(key('k')), TopRequestKind::None);
  EXPECT_EQ(press(key('x')), TopRequestKind::None);
  EXPECT_EQ(state_.notice, "nothing was sent");
  press(key('k'));
  const auto request = handle_input(state_, key('y'), layout_, data_);
  EXPECT_EQ(request.kind, TopRequestKind::EndProcess);
  EXPECT_EQ(request.pid, 10U);
  EXPECT_EQ(request.command, "train");
  press(key('k'));
  EXPECT_EQ(press(key('9')), TopRequestKind::KillProcess);
}

TEST_F(TopKeys, EndsNothingOfARecordingOrOfAnotherPidNamespace) {
  data_.snapshot.devices[0].processes = {{0, "", 5, GpuProcessKind::Compute}};
  press(key('p'));
  press(InputKind::Down);
  press(key('k'));
  EXPECT_FALSE(state_.question);
  data_.replay = ReplayPlace{.index = 0, .count = 2};
  press(key('k'));
  EXPECT_FALSE(state_.question);
  EXPECT_EQ(state_.notice, "these processes are recorded ones");
}

TEST_F(TopKeys, SortsByTheTitleThatIsClicked) {
  layout_.titles = {{0, 8, SortKey::Device}, {30, 37, SortKey::Memory}};
  press({InputKind::Click, 0, 2, 33});
  EXPECT_EQ(state_.sort, SortKey::Memory);
  EXPECT_FALSE(state_.is_reversed);
  press({InputKind::Click, 0, 2, 30});
  EXPECT_TRUE(state_.is_reversed);
  press({InputKind::Click, 0, 2, 37});  // beside it
  EXPECT_EQ(state_.sort, SortKey::Memory);
}

TEST_F(TopKeys, ChoosesTheDeviceThatIsClicked) {
  layout_.lines = {{5, 1U, std::nullopt}};
  press({InputKind::Click, 0, 5, 70});
  EXPECT_EQ(state_.device, 1U);
  press({InputKind::Click, 0, 5, 1});
  EXPECT_EQ(state_.device, std::nullopt);
}

TEST_F(TopKeys, PausesLiveAndPlaysReplays) {
  EXPECT_EQ(press(key(' ')), TopRequestKind::None);
  EXPECT_TRUE(state_.is_paused);
  EXPECT_EQ(press(InputKind::Right), TopRequestKind::None);
  data_.replay = ReplayPlace{.index = 0, .count = 2};
  EXPECT_EQ(press(key(' ')), TopRequestKind::PlayOrStop);
  EXPECT_EQ(press(InputKind::Right), TopRequestKind::StepOn);
  EXPECT_EQ(press(InputKind::Left), TopRequestKind::StepBack);
  EXPECT_EQ(press(key('+')), TopRequestKind::Faster);
  EXPECT_EQ(press(key('-')), TopRequestKind::Slower);
}

TEST(ShownDevices, AreSortedWithSlicesBelowTheirGpu) {
  auto snapshot = machine_of(2);
  snapshot.devices.insert(snapshot.devices.begin() + 1, h200_slice(0, 0));
  // Now cuda:0, its slice, cuda:1, cpu:0.
  snapshot.devices[2].readings.set(Reading::GpuMemoryUsed, 120e9);
  TopState state;
  EXPECT_EQ(shown_devices(snapshot, state), (Indices{0, 1, 2, 3}));
  state.sort = SortKey::Memory;  // 120, 98, 34 GB
  EXPECT_EQ(shown_devices(snapshot, state), (Indices{2, 0, 1, 3}));
  state.is_reversed = true;
  EXPECT_EQ(shown_devices(snapshot, state), (Indices{3, 0, 1, 2}));
}

TEST(ShownDevices, AreFilteredByNameModelAndUuid) {
  const auto snapshot = machine_of(2);
  TopState state;
  state.filter = "epyc";
  EXPECT_EQ(shown_devices(snapshot, state), (Indices{2}));
  state.filter = "gpu-00000000-0000-0000-0000-000000000001";
  EXPECT_EQ(shown_devices(snapshot, state), (Indices{1}));
  state.filter = "mi300";
  EXPECT_EQ(shown_devices(snapshot, state), Indices{});
}

TEST(ShownProcesses, AreThoseOfTheChosenDeviceTheLargestFirst) {
  auto snapshot = machine_of(2);
  snapshot.devices[0].processes = {{10, "small", 5, GpuProcessKind::Compute},
                                   {11, "large", 50, GpuProcessKind::Compute}};
  snapshot.devices[1].processes = {{12, "other", 20, GpuProcessKind::Compute}};
  TopState state;
  const auto pids = [&] {
    Indices found;
    for (const auto& shown : shown_processes(snapshot, state)) found.push_back(shown.pid());
    return found;
  };
  EXPECT_EQ(pids(), (Indices{11, 12, 10}));
  state.device = 0;
  EXPECT_EQ(pids(), (Indices{11, 10}));
  state.filter = "SMALL";
  EXPECT_EQ(pids(), (Indices{10}));
}

HostProcess host_process(std::uint32_t pid, const std::string& command, double cores) {
  HostProcess process;
  process.pid = pid;
  process.command = command;
  process.cores = cores;
  process.memory_bytes = 1'000'000;
  return process;
}

TEST(ShownProcesses, JoinWhatTheDriverAndTheKernelSay) {
  auto snapshot = machine_of(1);
  snapshot.devices[0].processes = {{10, "python3", 5, GpuProcessKind::Compute},
                                   {0, "", 2, GpuProcessKind::Mps}};
  snapshot.processes = {host_process(11, "gzip", 1.0), host_process(10, "python3", 0.7)};
  const auto shown = shown_processes(snapshot, {});
  ASSERT_EQ(shown.size(), 3U);
  EXPECT_EQ(shown[0].pid(), 10U);
  ASSERT_NE(shown[0].host, nullptr);
  EXPECT_EQ(shown[0].host->cores, 0.7);
  EXPECT_EQ(shown[1].host, nullptr) << "of another pid namespace";
  EXPECT_EQ(shown[2].pid(), 11U);
  EXPECT_EQ(shown[2].device, std::nullopt);
  TopState state;
  state.device = 1;  // cpu:0
  ASSERT_EQ(shown_processes(snapshot, state).size(), 1U);
  EXPECT_EQ(shown_processes(snapshot, state).front().command(), "gzip");
}

TEST(ShownProcesses, TellOfASliceOnce) {
  auto snapshot = machine_of(2);
  snapshot.devices.insert(snapshot.devices.begin() + 1, h200_slice(0, 0));
  snapshot.devices[0].processes = {{10, "triton", 5, GpuProcessKind::Compute},
                                   {11, "other", 1, GpuProcessKind::Compute}};
  snapshot.devices[1].processes = {{10, "triton", 5, GpuProcessKind::Compute}};
  const auto shown = shown_processes(snapshot, {});
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_EQ(shown[0].pid(), 10U);
  EXPECT_EQ(shown[0].device, 1U) << "the slice";
  EXPECT_EQ(shown[1].pid(), 11U);
}

TEST(ShownProcesses, PutAWorkerOnItsDevice) {
  auto snapshot = machine_of(1);
  auto worker = host_process(10, "muster-worker", 0.5);
  worker.device = "cuda:0";
  worker.models = "bge-m3";
  snapshot.processes = {worker};
  TopState state;
  ASSERT_EQ(shown_processes(snapshot, state).size(), 1U);
  EXPECT_EQ(shown_processes(snapshot, state).front().device, 0U);
  state.filter = "BGE";
  EXPECT_EQ(shown_processes(snapshot, state).size(), 1U);
  state.filter = "llama";
  EXPECT_TRUE(shown_processes(snapshot, state).empty());
}

TEST(ShownProcesses, OfAPrintedFrameAreTenWithoutAGpu) {
  auto snapshot = machine_of(1);
  snapshot.devices[0].processes = {{99, "python3", 5, GpuProcessKind::Compute}};
  for (std::uint32_t pid = 100; pid < 150; ++pid) {
    snapshot.processes.push_back(host_process(pid, "sleep", 0));
  }
  TopState state;
  EXPECT_EQ(shown_processes(snapshot, state).size(), 51U);
  state.has_keys = false;
  EXPECT_EQ(shown_processes(snapshot, state).size(), 11U);
}

}  // namespace
}  // namespace muster
