#pragma once

#include <memory>
#include <string>

#include "spec/standin_device.h"

namespace muster::standin {

/// Where a device says how it is: in the file that watches it, else nowhere.
///
/// Threads: thread-safe.
class Report {
 public:
  /// Of the device of this name, "standin:1", which has so many bytes.
  Report(const std::string& device, std::uint64_t memory_bytes);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  StandinReport& numbers() { return *numbers_; }

 private:
  StandinReport nowhere_{};
  StandinReport* numbers_ = &nowhere_;
};

}  // namespace muster::standin
