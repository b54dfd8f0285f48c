#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>

#include "hw/device_sources.h"

namespace muster {

/// Counts calls by function, as the sampler process does.
class NvmlCallLog final : public CallWatch {
 public:
  void enter(const char* function, TimePoint /*at*/) override { entered_ = function; }
  void leave(const char* function, std::int32_t code, Duration /*took*/) override {
    EXPECT_STREQ(function, entered_);
    ++counts[function];
    last_codes[function] = code;
  }

  std::map<std::string, int> counts;
  std::map<std::string, std::int32_t> last_codes;

 private:
  const char* entered_ = "";
};

/// The stand-in driver under a scenario, with a clock that the test sets, and a folder that stands
/// in front of /proc and /sys.
class FakeDriver {
 public:
  explicit FakeDriver(const std::string& scenario, const std::string& library = "libfakenvml.so");
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;
  ~FakeDriver();

  /// Writes a file below the root.
  void put(const std::string& file, const std::string& text) const;

  /// Moves the driver's clock to a time since it was loaded.
  void at(double time_s);

  NvmlOptions options() const;

  DeviceSource open() { return open(options()); }
  DeviceSource open(const NvmlOptions& options);

  /// A visit at the clock's time.
  DeviceSample visit(DeviceSampler& sampler, std::initializer_list<Tier> tiers) const;
  DeviceSample visit(DeviceSampler& sampler) const {
    return visit(sampler, {Tier::Fast, Tier::Medium, Tier::Slow});
  }

  mutable NvmlCallLog watch;

 private:
  std::string path_;
  std::filesystem::path root_;
  void* library_ = nullptr;
  TimePoint now_;
};

}  // namespace muster
