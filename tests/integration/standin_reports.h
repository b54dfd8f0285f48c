#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/file.h"
#include "spec/standin_device.h"

namespace muster {

/// What the first two stand-in devices tell of themselves, from its making on.
class StandinReports {
 public:
  explicit StandinReports(const std::filesystem::path& folder) : folder_(folder) {
    for (int i = 0; i < 2; ++i) std::ofstream(file(i)).flush();
    ::setenv(kStandinReportsVariable.data(), folder_.c_str(), 1);
  }
  ~StandinReports() { ::unsetenv(kStandinReportsVariable.data()); }
  StandinReports(const StandinReports&) = delete;
  StandinReports& operator=(const StandinReports&) = delete;

  /// A number of the last process that had the device; place: offsetof(StandinReport, full).
  std::uint64_t number(int device, std::size_t place) const {
    const auto report = *read_file(file(device));
    EXPECT_EQ(report.size(), sizeof(StandinReport)) << "no process had standin:" << device;
    if (report.size() != sizeof(StandinReport)) return 0;
    std::array<std::uint64_t, sizeof(StandinReport) / sizeof(std::uint64_t)> numbers{};
    std::memcpy(numbers.data(), report.data(), sizeof numbers);
    return numbers.at(place / sizeof(std::uint64_t));
  }

 private:
  std::filesystem::path file(int device) const {
    return folder_ / ("standin-" + std::to_string(device));
  }

  const std::filesystem::path folder_;
};

}  // namespace muster
