#include "doctor/system_facts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace muster {
namespace {

namespace fs = std::filesystem;

class SystemFactsTest : public testing::Test {
 protected:
  SystemFactsTest() {
    const auto* name = testing::UnitTest::GetInstance()->current_test_info()->name();
    root_ = fs::path(testing::TempDir()) / ("muster_facts_" + std::to_string(getpid()) + name);
  }
  ~SystemFactsTest() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  fs::path root_;
};

TEST_F(SystemFactsTest, ReadsARecordedMachine) {
  write("sys/bus/pci/devices/0000:1b:00.0/class", "0x030200\n");
  write("sys/bus/pci/devices/0000:1b:00.0/vendor", "0x10de\n");
  write("sys/bus/pci/devices/0000:1b:00.1/class", "0x040300\n");  // its sound
  write("sys/bus/pci/devices/0000:1b:00.1/vendor", "0x10de\n");
  write("sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n");  // another's display
  write("sys/bus/pci/devices/0000:02:00.0/vendor", "0x1a03\n");
  write("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n");
  write("proc/uptime", "1234.50 99.0\n");
  write("sys/devices/system/cpu/online", "0-63,128\n");
  write("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
  write("sys/class/powercap/intel-rapl:0/energy_uj", "12345\n");
  write("sys/class/powercap/intel-rapl:0:0/energy_uj", "1\n");  // a part of the package
  write("dev/kmsg", "4,1,1000000,-;NVRM: Xid (PCI:0000:1b:00): 31, pid=1\n");
  const auto facts = read_system_facts(root_);
  EXPECT_EQ(facts.nvidia_gpus_on_bus, 1U);
  EXPECT_EQ(facts.nvidia_module, "580.95.05");
  EXPECT_EQ(facts.seconds_since_boot, 1234.5);
  EXPECT_EQ(facts.cpus_online, 65U);
  ASSERT_TRUE(facts.clock_source);
  EXPECT_EQ(*facts.clock_source, "hpet");
  ASSERT_TRUE(facts.energy_domains);
  EXPECT_EQ(*facts.energy_domains, 1U);
  ASSERT_TRUE(facts.kernel_xids);
  EXPECT_EQ(facts.kernel_xids->at(0).code, 31U);
  EXPECT_EQ(facts.shared_memory.error().kind, ErrorKind::NotFound);
  EXPECT_GT(facts.open_files_max, 0U);
}

TEST_F(SystemFactsTest, AnEmptyMachineHasReasons) {
  fs::create_directories(root_);
  const auto facts = read_system_facts(root_);
  EXPECT_EQ(facts.nvidia_gpus_on_bus, 0U);
  EXPECT_FALSE(facts.nvidia_module);
  EXPECT_FALSE(facts.cpus_online);
  EXPECT_EQ(facts.energy_domains.error().kind, ErrorKind::NotFound);
  EXPECT_EQ(facts.kernel_xids.error().kind, ErrorKind::NotFound);
  EXPECT_EQ(facts.clock_source.error().kind, ErrorKind::Unavailable);
}

TEST_F(SystemFactsTest, AnEnergyCounterThatCannotBeReadIsNotMissing) {
  fs::create_directories(root_ / "sys/class/powercap/intel-rapl:0/energy_uj");  // no file
  const auto facts = read_system_facts(root_);
  ASSERT_FALSE(facts.energy_domains);
  EXPECT_NE(facts.energy_domains.error().kind, ErrorKind::NotFound);
  EXPECT_NE(facts.energy_domains.error().message.find("energy_uj"), std::string::npos);
}

TEST(CpuList, CountsRangesAndRefusesNonsense) {
  EXPECT_EQ(count_cpu_list("0"), 1U);
  EXPECT_EQ(count_cpu_list("0-3,8-9\n"), 6U);
  EXPECT_FALSE(count_cpu_list(""));
  EXPECT_FALSE(count_cpu_list("3-1"));
  EXPECT_FALSE(count_cpu_list("0-"));
  EXPECT_FALSE(count_cpu_list("all"));
}

TEST(FolderFacts, AFolderThatIsNotThereYetIsJudgedByItsAncestor) {
  const auto facts = read_folder_facts(fs::path(testing::TempDir()) / "muster_no/such/folder");
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_TRUE(facts->is_writable);
  EXPECT_GT(facts->size_bytes, 0U);
}

}  // namespace
}  // namespace muster
