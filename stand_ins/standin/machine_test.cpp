#include "standin/machine.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "standin/host_access.h"
#include "standin/machine_fixture.h"

namespace muster::standin {
namespace {

constexpr Place kDefault{0, 0};
constexpr Place kFirst{0, 1};
constexpr Place kSecond{0, 2};

class OneDevice : public MachineTest {
 protected:
  void SetUp() override { open({DeviceSettings{}}); }
};

TEST_F(OneDevice, ACopyBringsToTheHostWhatAKernelWrote) {
  auto* memory = allocate(kDefault, 8);
  auto* pinned = allocate_pinned(8);
  ASSERT_TRUE(fill(kDefault, memory, 8, 'x'));
  ASSERT_TRUE(copy(kDefault, pinned, memory, 8));
  ASSERT_TRUE(machine_->wait(kDefault));
  EXPECT_EQ(std::string(pinned, 8), "xxxxxxxx");
  machine_->free(memory);
  machine_->free_pinned(pinned);
}

TEST_F(OneDevice, WhatWasNeverWrittenIsNaN) {
  auto* memory = allocate(kDefault, 4);
  auto* pinned = allocate_pinned(4);
  ASSERT_TRUE(copy(kDefault, pinned, memory, 4));
  ASSERT_TRUE(machine_->wait(kDefault));
  float value = 0;
  std::memcpy(&value, pinned, 4);
  EXPECT_TRUE(value != value);
}

TEST_F(OneDevice, TheHostCannotReadADevicesMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto* memory = allocate(kDefault, 8);
  EXPECT_DEATH(
      {
        explain_host_access(*machine_);
        volatile char value = *memory;
        static_cast<void>(value);
      },
      "the host touches memory of a device");
}

TEST_F(OneDevice, NorWriteIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto* memory = allocate(kDefault, 8);
  EXPECT_DEATH(
      {
        explain_host_access(*machine_);
        *static_cast<volatile char*>(memory) = 1;
      },
      "the host touches memory of a device");
}

TEST_F(OneDevice, AKernelThatLeavesItsMemoryIsToldToo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto* memory = allocate(kDefault, 8);
  EXPECT_DEATH(
      {
        explain_host_access(*machine_);
        (void)fill(kDefault, memory, 2 * kPageSize, 'x');
        (void)machine_->wait(kDefault);
      },
      "a kernel touches memory that is not given out");
}

TEST_F(OneDevice, ASegmentationFaultThatAnotherProcessSendsStillEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::signal(SIGSEGV, SIG_DFL);  // not the sanitizers' handler
        explain_host_access(*machine_);
        ::kill(::getpid(), SIGSEGV);
        std::_Exit(0);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(OneDevice, WhatIsCopiedIsTheHostsOnlyWhenItHasWaited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto* memory = allocate(kDefault, 8);
  auto* pinned = allocate_pinned(8);
  ASSERT_TRUE(fill(kDefault, memory, 8, 'x'));
  ASSERT_TRUE(copy(kDefault, pinned, memory, 8));
  EXPECT_DEATH(
      {
        explain_host_access(*machine_);
        volatile char value = *pinned;
        static_cast<void>(value);
      },
      "pinned memory that a device may still use");
  ASSERT_TRUE(machine_->wait(kFirst));  // another stream's end says nothing
  EXPECT_DEATH(*static_cast<volatile char*>(pinned) = 1, "");
  ASSERT_TRUE(machine_->wait(kDefault));
  EXPECT_EQ(*pinned, 'x');
}

TEST_F(OneDevice, WhatIsCopiedFromMayBeReadAndNotWritten) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto* memory = allocate(kDefault, 8);
  auto* pinned = allocate_pinned(8);
  *pinned = 'a';
  ASSERT_TRUE(copy(kDefault, memory, pinned, 8));
  EXPECT_EQ(*pinned, 'a');
  EXPECT_DEATH(*static_cast<volatile char*>(pinned) = 'b', "");
  ASSERT_TRUE(machine_->wait(kDefault));
  *pinned = 'b';
}

TEST_F(OneDevice, PinnedMemoryThatIsFreedDuringItsCopyIsNotGivenOutAgainBefore) {
  auto* memory = allocate(kDefault, 8);
  auto* pinned = allocate_pinned(8);
  std::memset(pinned, 'p', 8);
  ASSERT_TRUE(copy(kDefault, memory, pinned, 8));
  machine_->free_pinned(pinned);
  auto* other = allocate_pinned(8);
  EXPECT_NE(other, pinned);
  ASSERT_TRUE(machine_->wait(kDefault));
  EXPECT_EQ(allocate_pinned(8), pinned);
  ASSERT_TRUE(copy(kDefault, other, memory, 8));
  ASSERT_TRUE(machine_->wait(kDefault));
  EXPECT_EQ(std::string(other, 8), "pppppppp");
}

TEST_F(OneDevice, PinnedMemoryThatWasFreedServesOtherSizesToo) {
  auto* memory = allocate_pinned(5 * kPageSize);
  machine_->free_pinned(memory);
  EXPECT_EQ(allocate_pinned(8 * kPageSize), memory);
  EXPECT_NE(allocate_pinned(9 * kPageSize), memory);
}

TEST_F(OneDevice, AStreamThatReadsWhatAnotherOneWritesMustWaitForIt) {
  auto* memory = allocate(kFirst, 8);
  auto* pinned = allocate_pinned(8);
  ASSERT_TRUE(fill(kFirst, memory, 8, 'x', "aten::fill_"));
  EXPECT_EQ(words(copy(kSecond, pinned, memory, 8, "aten::_copy_from")),
            "aten::_copy_from on stream 2 of standin:0 reads memory that aten::fill_ writes on "
            "stream 1 of standin:0, and nothing lets it wait for that");
  Event event;
  machine_->record(event, kFirst);
  ASSERT_TRUE(machine_->let_wait(kSecond, event));
  ASSERT_TRUE(copy(kSecond, pinned, memory, 8));
  ASSERT_TRUE(machine_->wait(kSecond));
  EXPECT_EQ(*pinned, 'x') << "the one stream has waited for the other";
}

TEST_F(OneDevice, WhatTheHostHasWaitedForEveryStreamMayUse) {
  auto* memory = allocate(kFirst, 8);
  ASSERT_TRUE(fill(kFirst, memory, 8, 'x'));
  ASSERT_TRUE(machine_->wait(kFirst));
  EXPECT_TRUE(fill(kSecond, memory, 8, 'y'));
}

TEST_F(OneDevice, AnEventKnowsNothingOfWhatCameAfterIt) {
  auto* memory = allocate(kFirst, 8);
  Event event;
  machine_->record(event, kFirst);
  ASSERT_TRUE(fill(kFirst, memory, 8, 'x'));
  ASSERT_TRUE(machine_->let_wait(kSecond, event));
  EXPECT_FALSE(fill(kSecond, memory, 8, 'y'));
}

TEST_F(OneDevice, AnEventIsOverWhenItsStreamHasComeThere) {
  Event event;
  EXPECT_TRUE(*machine_->is_over(event)) << "never recorded";
  auto* memory = allocate(kFirst, 8);
  ASSERT_TRUE(fill(kFirst, memory, 8, 'x'));
  machine_->record(event, kFirst);
  EXPECT_FALSE(*machine_->is_over(event));
  ASSERT_TRUE(machine_->wait_for(event));
  EXPECT_TRUE(*machine_->is_over(event));
  EXPECT_TRUE(fill(kSecond, memory, 8, 'y'));
}

TEST_F(OneDevice, MemoryGivenBackWhileAnotherStreamUsesItIsToldNext) {
  auto* memory = allocate(kFirst, 8);
  ASSERT_TRUE(machine_->wait(kFirst));
  ASSERT_TRUE(fill(kSecond, memory, 8, 'x', "aten::fill_"));
  machine_->free(memory);
  EXPECT_EQ(words(machine_->wait(kFirst)),
            "giving memory back on stream 1 of standin:0 writes memory that aten::fill_ writes on "
            "stream 2 of standin:0, and nothing lets it wait for that");
  EXPECT_TRUE(machine_->wait(kFirst)) << "told once";
}

TEST_F(OneDevice, WhoEmptiesTheCacheDoesNotTakeThatAway) {
  auto* memory = allocate(kFirst, 8);
  ASSERT_TRUE(machine_->wait(kFirst));
  ASSERT_TRUE(fill(kSecond, memory, 8, 'x'));
  machine_->free(memory);
  EXPECT_TRUE(machine_->release_kept(0));
  EXPECT_FALSE(machine_->wait(kFirst)) << "it is still to be told";
}

TEST_F(OneDevice, AUserOfMemoryIsWaitedForWhenItIsGivenBack) {
  auto* memory = allocate(kFirst, 8);
  ASSERT_TRUE(machine_->wait(kFirst));
  ASSERT_TRUE(fill(kSecond, memory, 8, 'x'));
  machine_->add_user(memory, kSecond);
  machine_->free(memory);
  EXPECT_TRUE(machine_->wait(kFirst));
  EXPECT_TRUE(*machine_->is_done(kSecond)) << "the first stream has waited for it";
}

TEST_F(OneDevice, MemoryIsGivenOutAgainOnItsOwnStreamAtOnce) {
  auto* memory = allocate(kFirst, 100);
  ASSERT_TRUE(fill(kFirst, memory, 100, 'x'));
  machine_->free(memory);
  EXPECT_NE(allocate(kSecond, 100), memory);
  EXPECT_EQ(allocate(kFirst, 100), memory);
}

TEST_F(OneDevice, UsingMemoryThatWasGivenBackIsRefused) {
  auto* memory = allocate(kFirst, 8);
  machine_->free(memory);
  EXPECT_EQ(words(fill(kFirst, memory, 8, 'x')),
            "fill on stream 1 of standin:0 uses memory that is not given out");
}

TEST_F(OneDevice, SoIsUsingPinnedMemoryThatWasFreed) {
  auto* memory = allocate(kFirst, 8);
  auto* pinned = allocate_pinned(8);
  machine_->free_pinned(pinned);
  constexpr auto* kWords = "copy on stream 1 of standin:0 uses memory that is not given out";
  EXPECT_EQ(words(copy(kFirst, memory, pinned, 8)), kWords);
  EXPECT_EQ(words(copy(kFirst, memory, pinned + kPageSize, 8)), kWords) << "nobody ever had it";
}

TEST(TwoDevices, EndTogetherThoughOneWaitsForTheOther) {
  std::vector<DeviceSettings> settings(2);
  for (auto& device : settings) device.late_us = 36'000'000'000;  // ten hours
  bool is_computed = false;
  {
    const auto machine = *Machine::open(std::move(settings));
    ASSERT_TRUE(machine->launch(
        {.place = {1, 1}, .operation = "first", .uses = {}, .work = [&] { is_computed = true; }}));
    Event event;
    machine->record(event, {1, 1});
    ASSERT_TRUE(machine->let_wait({0, 1}, event));
    machine->record(event, {0, 1});
    ASSERT_TRUE(machine->let_wait({1, 2}, event));
  }
  EXPECT_TRUE(is_computed);
}

TEST(TwoDevices, DoNotUseEachOthersMemory) {
  std::vector<DeviceSettings> settings(2);
  settings[0].name = "standin:0";
  settings[1].name = "standin:1";
  const auto machine = *Machine::open(std::move(settings));
  auto* memory = *machine->allocate({1, 0}, 8);
  EXPECT_EQ(machine->device_of(memory), 1U);
  const auto status = machine->launch(
      {.place = {0, 0}, .operation = "fill", .uses = {{memory, true}}, .work = [] {}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "fill on stream 0 of standin:0 uses memory of another device");
}

// So a slow one is as many times slower on a CPU where kernels cost next to nothing.
TEST_F(MachineTest, AKernelTakesNoLessThanItsTimeAndASlowOneSoManyTimesThat) {
  open({{.kernel_us = 2000}, {.kernel_us = 2000, .slow_after_s = 0, .slow_factor = 3}});
  for (const std::size_t device : {0U, 1U}) {
    const Place place{device, 1};
    auto* memory = allocate(place, 8);
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(fill(place, memory, 8, 1));
    ASSERT_TRUE(machine_->wait(place));
    EXPECT_GE(std::chrono::steady_clock::now() - begin,
              std::chrono::milliseconds(device == 0 ? 2 : 6));
  }
}

TEST_F(OneDevice, WhatAKernelThrowsEndsTheDeviceForTheProcess) {
  ASSERT_TRUE(
      machine_->launch({.place = kFirst, .operation = "aten::index_select", .uses = {}, .work = [] {
                          throw std::runtime_error("index 9 is too large\nat");
                        }}));
  bool is_computed = false;
  ASSERT_TRUE(machine_->launch(
      {.place = kFirst, .operation = "next", .uses = {}, .work = [&] { is_computed = true; }}))
      << "a launch does not wait";
  const auto status = machine_->wait(kFirst);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(status.error().message,
            "standin:0 error: device-side assert triggered (aten::index_select: index 9 is too "
            "large)");
  EXPECT_FALSE(is_computed);
  EXPECT_EQ(machine_->failure(0)->error, DeviceError::Assert);
  EXPECT_FALSE(machine_->allocate(kSecond, 8));
  EXPECT_FALSE(machine_->launch({.place = kSecond, .operation = "x", .uses = {}, .work = [] {}}));
}

class PlantedFaults : public MachineTest {};

TEST_F(PlantedFaults, AnErrorStrikesTheKernelOfItsNumber) {
  open({{.fail_at_kernel = 2, .error = DeviceError::EccUncorrectable}});
  auto* memory = allocate(kFirst, 8);
  auto* pinned = allocate_pinned(8);
  ASSERT_TRUE(fill(kFirst, memory, 8, 'x'));
  ASSERT_TRUE(copy(kFirst, pinned, memory, 8)) << "a copy is no kernel";
  ASSERT_TRUE(machine_->wait(kFirst));
  ASSERT_TRUE(fill(kFirst, memory, 8, 'y'));
  EXPECT_EQ(words(machine_->wait(kFirst)),
            "standin:0 error: uncorrectable ECC error encountered (planted at fill)");
}

TEST_F(PlantedFaults, WorkOfTheDefaultStreamMayBeLeftOutOfTheCount) {
  open({{.full_at_allocation = 1, .fail_at_kernel = 1, .in_lanes = 1}});
  auto* memory = allocate(kDefault, 8);
  ASSERT_TRUE(fill(kDefault, memory, 8, 'x'));
  ASSERT_TRUE(machine_->wait(kDefault));
  EXPECT_FALSE(machine_->allocate(kFirst, 8));
  ASSERT_TRUE(fill(kFirst, memory, 8, 'x'));
  EXPECT_FALSE(machine_->wait(kFirst));
}

TEST_F(PlantedFaults, ALossIsToldToThoseWhoOpenTheDeviceLater) {
  const auto state = testing::TempDir() + "standin_machine_test";
  std::filesystem::remove(state + ".lost");
  open({{.fail_at_copy = 1, .error = DeviceError::DeviceLost, .state_file = state}});
  ASSERT_TRUE(copy(kFirst, allocate_pinned(8), allocate(kFirst, 8), 8));
  EXPECT_FALSE(machine_->wait(kFirst));
  EXPECT_TRUE(std::filesystem::exists(state + ".lost"));
  std::filesystem::remove(state + ".lost");
}

TEST_F(PlantedFaults, AnAllocationOfItsNumberFindsNoMemory) {
  open({{.full_at_allocation = 2, .full_count = 2}});
  EXPECT_TRUE(machine_->allocate(kFirst, 8));
  for (int i = 0; i < 2; ++i) {
    const auto memory = machine_->allocate(kFirst, 8);
    ASSERT_FALSE(memory);
    EXPECT_EQ(memory.error().kind, ErrorKind::ResourceExhausted);
  }
  EXPECT_TRUE(machine_->allocate(kFirst, 8));
  EXPECT_EQ(machine_->memory_counts(0).full, 2U);
}

class WatchedDevice : public testing::Test {
 protected:
  WatchedDevice() {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "standin-5").flush();
    ::setenv("STANDIN_REPORTS", folder_.c_str(), 1);
  }
  ~WatchedDevice() override {
    ::unsetenv("STANDIN_REPORTS");
    std::filesystem::remove_all(folder_);
  }

  static std::unique_ptr<Machine> open(DeviceSettings settings) {
    settings.name = "standin:5";
    return *Machine::open({std::move(settings)});
  }

  // Its numbers, in the order of StandinReport.
  std::vector<std::uint64_t> told() const {
    std::vector<std::uint64_t> numbers(sizeof(StandinReport) / sizeof(std::uint64_t));
    std::ifstream file(folder_ / "standin-5", std::ios::binary);
    file.read(reinterpret_cast<char*>(numbers.data()), sizeof(StandinReport));
    EXPECT_TRUE(file);
    return numbers;
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("standin_reports." + std::to_string(::getpid()));
};

TEST_F(WatchedDevice, TellsWhatItDoes) {
  const auto machine = open({.memory_bytes = 8192});
  auto* memory = *machine->allocate({0, 1}, 1000);
  ASSERT_TRUE(machine->launch(
      {.place = {0, 1},
       .operation = "copy",
       .uses = {{memory, true}},
       .kind = WorkKind::Copy,
       .bytes_to_device = 1000,
       .work = [at = machine->kernel_address(memory)] { std::memset(at, 0, 1000); }}));
  ASSERT_TRUE(machine->wait({0, 1}));
  EXPECT_FALSE(machine->allocate({0, 1}, 8192));
  const auto numbers = told();
  EXPECT_EQ(numbers[0], static_cast<std::uint64_t>(::getpid()));
  EXPECT_EQ(numbers[1], 8192U);
  EXPECT_EQ(numbers[2], 1024U) << "in units of the allocator";
  EXPECT_GT(numbers[3], 0U);
  EXPECT_EQ(numbers[4], 0U);
  EXPECT_EQ(numbers[5], 1U);
  EXPECT_EQ(numbers[6], 1000U);
  EXPECT_EQ(numbers[7], 0U);
  EXPECT_EQ(numbers[8], 1U);
  EXPECT_EQ(numbers[9], 0U);
}

// What a device does for itself is no work: filling new memory, and waiting.
TEST_F(WatchedDevice, IsNotBusyWhileItWaits) {
  const auto machine = open({.in_lanes = 1});
  ASSERT_TRUE(machine->allocate({0, 1}, 1 << 20));
  Event event;
  machine->record(event, {0, 1});
  ASSERT_TRUE(machine->let_wait({0, 2}, event));
  ASSERT_TRUE(machine->wait({0, 2}));
  EXPECT_EQ(told()[3], 0U);
  ASSERT_TRUE(machine->launch({.place = {0, 0}, .operation = "x", .uses = {}, .work = [] {}}));
  ASSERT_TRUE(machine->wait({0, 0}));
  EXPECT_EQ(told()[4], 1U) << "in_lanes leaves it out of the planted faults alone";
}

TEST_F(WatchedDevice, ADriverRemembersItsXidsAndAProcessBeginsAtZero) {
  for (std::uint64_t life = 1; life <= 2; ++life) {
    const auto machine = open({.fail_at_kernel = 1, .error = DeviceError::EccUncorrectable});
    EXPECT_EQ(told()[9], 0U);
    ASSERT_TRUE(machine->allocate({0, 1}, 1));
    ASSERT_TRUE(machine->launch({.place = {0, 1}, .operation = "x", .uses = {}, .work = [] {}}));
    EXPECT_FALSE(machine->wait({0, 1}));
    EXPECT_EQ(told()[9], 214U);
    EXPECT_EQ(told()[10], 1U) << "allocations";
    EXPECT_EQ(told()[11], 48U);
    EXPECT_EQ(told()[12], life);
  }
}

class LittleMemory : public MachineTest {
 protected:
  static constexpr std::uint64_t kMemory = 64 * 1024;

  void SetUp() override {
    std::filesystem::remove(held_file());
    open({{.memory_bytes = kMemory, .held_file = held_file()}});
  }
  void TearDown() override { std::filesystem::remove(held_file()); }

  static std::string held_file() { return testing::TempDir() + "standin_held"; }
  static void let_others_hold(std::uint64_t bytes) { std::ofstream(held_file()) << bytes; }
};

TEST_F(LittleMemory, AFullDeviceSaysHowMuchItHas) {
  allocate(kFirst, kMemory / 2);
  const auto memory = machine_->allocate(kFirst, kMemory);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().message,
            "standin:0 is out of memory: 0.06 MiB asked for, 0.03 of 0.06 MiB free, 0.03 MiB given "
            "out by this process");
}

TEST_F(LittleMemory, WhatIsKeptForLaterIsGivenToWhoNeedsIt) {
  machine_->free(allocate(kFirst, kMemory));
  EXPECT_EQ(machine_->memory_counts(0).taken_bytes, kMemory);
  EXPECT_NE(allocate(kSecond, kMemory / 2), nullptr);
  EXPECT_EQ(machine_->memory_counts(0).taken_bytes, kMemory / 2);
}

TEST_F(LittleMemory, MemoryThatIsGivenOutAgainDoesNotGrow) {
  std::vector<char*> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(allocate(kFirst, 1024));
  for (auto* block : blocks) machine_->free(block);
  for (int i = 0; i < 16; ++i) EXPECT_NE(allocate(kFirst, 4096), nullptr);
  EXPECT_EQ(machine_->memory_counts(0).taken_peak, kMemory);
  EXPECT_FALSE(machine_->allocate(kFirst, 1));
}

TEST_F(LittleMemory, ThePeakIsThatSinceItWasRestarted) {
  auto* memory = allocate(kFirst, 1000);
  EXPECT_EQ(machine_->memory_counts(0).live_bytes, 1024U);
  machine_->free(memory);
  EXPECT_EQ(machine_->memory_counts(0).live_bytes, 0U);
  EXPECT_EQ(machine_->memory_counts(0).live_peak, 1024U);
  machine_->restart_peaks(0);
  EXPECT_EQ(machine_->memory_counts(0).live_peak, 0U);
}

TEST_F(LittleMemory, OthersMayHoldSomeOfItAndLetItGo) {
  let_others_hold(kMemory - 1024);
  EXPECT_EQ(machine_->free_memory(0).free_bytes, 1024U);
  EXPECT_EQ(machine_->free_memory(0).total_bytes, kMemory);
  EXPECT_FALSE(machine_->allocate(kFirst, 2048));
  let_others_hold(0);
  EXPECT_TRUE(machine_->allocate(kFirst, 2048));
}

}  // namespace
}  // namespace muster::standin
