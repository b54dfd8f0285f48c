#include "containers/rocm_devices.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace muster {
namespace {

namespace fs = std::filesystem;

class FindRocmGpus : public testing::Test {
 protected:
  FindRocmGpus() { fs::create_directories(root_); }
  ~FindRocmGpus() override { fs::remove_all(root_); }

  void add_node(const std::string& number, const std::string& properties) const {
    const auto folder = root_ / "sys/class/kfd/kfd/topology/nodes" / number;
    fs::create_directories(folder);
    std::ofstream(folder / "properties") << properties;
  }

  const fs::path root_ = fs::path(testing::TempDir()) / ("muster_rocm_" + std::to_string(getpid()));
};

TEST_F(FindRocmGpus, FindsNothingWithoutTheDriver) {
  EXPECT_TRUE(find_rocm_gpus(root_).gpus.empty());
  EXPECT_TRUE(find_rocm_gpus(root_).group_ids.empty());
}

TEST_F(FindRocmGpus, LeavesOutProcessorsAndGoesByNodeNumber) {
  add_node("0", "cpu_cores_count 64\nsimd_count 0\ndrm_render_minor 0\n");
  add_node("10", "cpu_cores_count 0\nsimd_count 416\ndrm_render_minor 130\n");
  add_node("2", "cpu_cores_count 0\nsimd_count 416\ndrm_render_minor 128\n");
  add_node("3", "not a property file");
  const auto host = find_rocm_gpus(root_);
  ASSERT_EQ(host.gpus.size(), 2U);
  EXPECT_EQ(host.gpus[0].render_file, "/dev/dri/renderD128");
  EXPECT_EQ(host.gpus[1].render_file, "/dev/dri/renderD130");
}

}  // namespace
}  // namespace muster
