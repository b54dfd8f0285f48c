#include "hw/nvml/nvml_driver_fixture.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

namespace muster {

namespace fs = std::filesystem;

FakeDriver::FakeDriver(const std::string& scenario, const std::string& library)
    : path_(MUSTER_BINARY_DIR "/lib/" + library),
      root_(fs::path(testing::TempDir()) / ("nvml_test." + std::to_string(getpid()))) {
  fs::remove_all(root_);
  put("scenario.json", scenario);
  setenv("FAKENVML_SCENARIO", (root_ / "scenario.json").c_str(), 1);
  library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library_, nullptr) << dlerror();
  at(0);
}

FakeDriver::~FakeDriver() {
  unsetenv("FAKENVML_SCENARIO");
  fs::remove_all(root_);
  if (library_ != nullptr) dlclose(library_);
}

void FakeDriver::put(const std::string& file, const std::string& text) const {
  fs::create_directories((root_ / file).parent_path());
  std::ofstream(root_ / file) << text;
}

void FakeDriver::at(double time_s) {
  const std::chrono::nanoseconds time(std::llround(time_s * 1e9));
  using SetTime = void(std::uint64_t);
  auto* const set_time = reinterpret_cast<SetTime*>(dlsym(library_, "fakenvml_set_time_ns"));
  set_time(static_cast<std::uint64_t>(time.count()));
  now_ = TimePoint() + time;
}

NvmlOptions FakeDriver::options() const {
  NvmlOptions options;
  options.libraries = {path_};
  options.root = root_;
  return options;
}

DeviceSource FakeDriver::open(const NvmlOptions& options) {
  auto source = open_nvml(options, watch);
  EXPECT_TRUE(source) << source.error().message;
  return source ? *std::move(source) : DeviceSource{};
}

DeviceSample FakeDriver::visit(DeviceSampler& sampler, std::initializer_list<Tier> tiers) const {
  DeviceSample sample;
  sample.at = now_;
  for (const auto tier : tiers) sample.tiers.set(static_cast<std::size_t>(tier));
  sampler.sample(sample.tiers, watch, sample);
  return sample;
}

}  // namespace muster
