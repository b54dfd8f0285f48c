#include "hw/cpu/rapl.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "hw/testdata/tree.h"

namespace muster {
namespace {

void zone(const TestTree& tree, const std::string& folder, const char* name, const char* energy,
          const char* range = "262143328850\n") {
  const std::filesystem::path path = "sys/class/powercap/" + folder;
  tree.write(path / "name", std::string(name) + "\n");
  tree.write(path / "max_energy_range_uj", range);
  tree.write(path / "energy_uj", energy);
}

// Steps of 15.258 uJ (2^-16 J in whole nanojoules): 2^32 of them are 65,532,611,002.368 uJ.
TEST(RaplCounter, CountsEveryTurnToTheStep) {
  RaplCounter counter(65532610987);
  EXPECT_EQ(counter.add(65532610987), 0.0);
  EXPECT_NEAR(counter.add(0), 15.368e-6, 1e-9) << "one step further";
  counter.add(40'000'000'000);
  counter.add(100);  // the second turn
  counter.add(50'000'000'000);
  // Three turns less the first value: 3 x 65,532,611,002.368 + 1,000 - 65,532,610,987.
  EXPECT_NEAR(counter.add(1000), 131065.223020104, 1e-6);
  EXPECT_EQ(counter.turns(), 3U);
}

// DRAM of servers: 15.3 uJ; client packages: 61.035 uJ.
TEST(RaplCounter, FindsTheStepOfEveryRange) {
  RaplCounter dram(65712999613);
  dram.add(65712999613);
  EXPECT_NEAR(dram.add(0), 15.5e-6, 1e-6);
  RaplCounter package(262143328850);
  package.add(262143328850);
  EXPECT_NEAR(package.add(0), 61.0e-6, 1e-6);
}

TEST(RaplCounter, CountsByTheMicrojouleWhereNoStepFits) {
  RaplCounter counter(999'999);
  counter.add(999'999);
  EXPECT_NEAR(counter.add(0), 1e-6, 1e-12);
  EXPECT_NEAR(counter.add(500'000), 0.500001, 1e-12);
}

TEST(FindRaplZones, KnowsEveryPackageAndWhatIsInIt) {
  const TestTree tree;
  for (const auto* package : {"0", "1", "2"}) {
    const auto folder = std::string("intel-rapl:") + package;
    zone(tree, folder, (std::string("package-") + package).c_str(), "1\n");
    zone(tree, folder + ":0", "core", "1\n");
    zone(tree, folder + ":1", "dram", "1\n", "65712999613\n");
  }
  zone(tree, "intel-rapl:3", "psys", "1\n");
  zone(tree, "intel-rapl-mmio:0", "package-0", "1\n");
  const auto zones = find_rapl_zones(tree.root());
  ASSERT_EQ(zones.size(), 10U) << "the copy over MMIO is left out";
  EXPECT_EQ(zones[6].domain, RaplDomain::Package);
  EXPECT_EQ(zones[6].package, 2U);
  EXPECT_EQ(zones[7].domain, RaplDomain::Part);
  EXPECT_EQ(zones[8].domain, RaplDomain::Dram);
  EXPECT_EQ(zones[8].package, 2U) << "of the zone above it";
  EXPECT_EQ(zones[8].range_uj, 65712999613U);
  EXPECT_EQ(zones[9].domain, RaplDomain::Psys);
  EXPECT_FALSE(zones[9].package);
}

TEST(RaplEnergy, AddsTheDiesOfASocketAndNothingElse) {
  const TestTree tree;
  zone(tree, "intel-rapl:0", "package-0-die-0", "1000000\n");
  zone(tree, "intel-rapl:1", "package-0-die-1", "5000000\n");
  zone(tree, "intel-rapl:0:0", "core", "7000000\n");
  zone(tree, "intel-rapl:2", "package-1-die-0", "9000000\n");
  RaplEnergy energy(find_rapl_zones(tree.root()), RaplDomain::Package, 0);
  CountingWatch watch;
  DeviceSample sample;
  energy.read(Reading::CpuEnergyPackage, watch, sample);
  EXPECT_EQ(sample.readings.get(Reading::CpuEnergyPackage), 0.0);
  tree.write("sys/class/powercap/intel-rapl:0/energy_uj", "3000000\n");
  tree.write("sys/class/powercap/intel-rapl:1/energy_uj", "5500000\n");
  energy.read(Reading::CpuEnergyPackage, watch, sample);
  EXPECT_DOUBLE_EQ(sample.readings.get(Reading::CpuEnergyPackage).value_or(-1), 2.5);
  EXPECT_EQ(sample.call_count, 4U);
  EXPECT_EQ(watch.left, 4);
}

TEST(RaplEnergy, SaysWhatThePackageCouldNotTell) {
  const TestTree tree;
  zone(tree, "intel-rapl:0", "package-0", "1000000\n");
  const auto zones = find_rapl_zones(tree.root());
  std::filesystem::remove(tree.root() / "sys/class/powercap/intel-rapl:0/energy_uj");
  RaplEnergy energy(zones, RaplDomain::Package, 0);
  CountingWatch watch;
  DeviceSample sample;
  energy.read(Reading::CpuEnergyPackage, watch, sample);
  EXPECT_FALSE(sample.readings.has(Reading::CpuEnergyPackage));
  ASSERT_EQ(sample.errors.size(), 1U);
  EXPECT_EQ(sample.errors[0].reading, Reading::CpuEnergyPackage);
  EXPECT_EQ(sample.errors[0].code, ENOENT);
}

}  // namespace
}  // namespace muster
