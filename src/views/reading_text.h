#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "spec/telemetry.h"

namespace muster {

// Readings as narrow columns show them. What is not known is "-".

/// "97" for 0.97; "0" for all that rounds to it.
std::string percent_text(std::optional<double> ratio);

/// Rounded to a whole number: "627".
std::string whole_text(std::optional<double> value);

/// "97/62", and "-" where neither is known.
std::string pair_text(const std::string& first, const std::string& second);

/// In powers of 1000 with at most four characters: "0", "950", "4.2k", "980M", "12G", "1.4T".
std::string short_number(std::optional<double> value);

/// Gigabytes of 1000^3: "98/151", with a decimal where the whole is below ten: "0.6/8.0".
std::string gigabytes_pair(std::optional<double> used, std::optional<double> size);

/// A model without what every row would begin with: "H200" for "NVIDIA H200".
std::string_view short_model(std::string_view model);

/// Bytes in use and in all: of a GPU, or of a CPU's NUMA node. The page cache of a CPU's memory is
/// not in use: the kernel gives it to the first program that asks.
struct MemoryUse {
  std::optional<double> used;
  std::optional<double> size;

  std::optional<double> share() const;
};
MemoryUse memory_use(const DeviceStatus& status);

/// How busy it is, as the driver or the kernel says: 0 to 1.
std::optional<double> busy_share(const DeviceStatus& status);

/// The worst of all watches; Well without any.
HealthState worst_state(const DeviceStatus& status);

/// The state of one watch; Well where it does not apply.
HealthState watch_state(const DeviceStatus& status, std::string_view watch);

bool is_slice(const DeviceStatus& status);
bool is_gpu(const DeviceStatus& status);  // a slice is one too

}  // namespace muster
