// The environment is the way in, because a worker is started by muster and inherits it. The words
// are read strictly: a fault that is misspelt would be a test that cannot fail.

#include "standin/settings.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/environment.h"
#include "base/file.h"
#include "base/text.h"

namespace muster::standin {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<std::string_view, DeviceError>, 6> kErrors{{
    {"ecc", DeviceError::EccUncorrectable},
    {"illegal address", DeviceError::IllegalAddress},
    {"timeout", DeviceError::LaunchTimeout},
    {"assert", DeviceError::Assert},
    {"launch failure", DeviceError::LaunchFailure},
    {"lost", DeviceError::DeviceLost},
}};

Error invalid(std::string message) { return invalid_error("STANDIN: " + std::move(message)); }

Status read_error(const Json& value, DeviceError& error) {
  for (const auto& [name, code] : kErrors) {
    if (value == name) {
      error = code;
      return Done{};
    }
  }
  return invalid("no such error: " + value.dump());
}

// 1e9 is a whole number too.
template <typename Number>
bool read_number(const Json& value, Number& number) {
  if (!value.is_number()) return false;
  const auto given = value.get<double>();
  if (given < 0) return false;
  if constexpr (std::is_integral_v<Number>) {
    const auto too_large = std::ldexp(1.0, std::numeric_limits<Number>::digits);
    if (given != std::floor(given) || given >= too_large) return false;
  }
  number = value.get<Number>();
  return true;
}

bool read_text(const Json& value, std::string& text) {
  if (!value.is_string()) return false;
  text = value.get<std::string>();
  return true;
}

Status read_word(const std::string& name, const Json& value, DeviceSettings& settings) {
  if (name == "error") return read_error(value, settings.error);
  bool is_known = false;
  bool is_read = false;
  const auto number = [&](const char* word, auto& member) {
    if (name != word) return;
    is_known = true;
    is_read = read_number(value, member);
  };
  const auto text = [&](const char* word, std::string& member) {
    if (name != word) return;
    is_known = true;
    is_read = read_text(value, member);
  };
  number("memory_bytes", settings.memory_bytes);
  number("late_us", settings.late_us);
  number("kernel_us", settings.kernel_us);
  number("slow_after_s", settings.slow_after_s);
  number("slow_factor", settings.slow_factor);
  number("lie_after_s", settings.lie_after_s);
  number("recover_after_s", settings.recover_after_s);
  number("crash_at_start", settings.crash_at_start);
  number("full_at_allocation", settings.full_at_allocation);
  number("full_count", settings.full_count);
  number("fail_at_kernel", settings.fail_at_kernel);
  number("fail_at_copy", settings.fail_at_copy);
  number("hang_at_kernel", settings.hang_at_kernel);
  number("hang_at_copy", settings.hang_at_copy);
  number("in_lanes", settings.in_lanes);
  number("faulty_starts", settings.faulty_starts);
  number("lost_for_s", settings.lost_for_s);
  text("held_file", settings.held_file);
  text("state_file", settings.state_file);
  if (is_known && is_read) return Done{};
  return invalid(is_known ? fmt::format("{} cannot be {}", name, value.dump())
                          : fmt::format("no such word: {}", name));
}

Status read_words(const Json& words, DeviceSettings& settings) {
  if (!words.is_object()) return invalid("what is said of a device is a JSON object");
  for (const auto& [name, value] : words.items()) MUSTER_TRY(read_word(name, value, settings));
  return Done{};
}

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Nothing is wrong any more, but for the memory: that is what the device has.
void heal(DeviceSettings& settings) {
  const DeviceSettings well;
  settings.slow_after_s = well.slow_after_s;
  settings.lie_after_s = well.lie_after_s;
  settings.full_at_allocation = well.full_at_allocation;
  settings.fail_at_kernel = well.fail_at_kernel;
  settings.fail_at_copy = well.fail_at_copy;
  settings.hang_at_kernel = well.hang_at_kernel;
  settings.hang_at_copy = well.hang_at_copy;
}

// The state file has the number of starts and the time of the first; a loss has a file beside it
// with its time. A process that is killed meanwhile leaves a file that is whole.
Status count_start(DeviceSettings& settings) {
  settings.first_start_s = monotonic_s();
  if (settings.state_file.empty()) return Done{};
  std::uint32_t starts = 0;
  double first_s = 0;
  if (std::ifstream(settings.state_file) >> starts >> first_s) settings.first_start_s = first_s;
  ++starts;
  MUSTER_TRY(write_file_atomically(settings.state_file,
                                   fmt::format("{} {:.9f}\n", starts, settings.first_start_s)));
  settings.is_crashing = starts <= settings.crash_at_start;
  if (settings.faulty_starts > 0 && starts > settings.faulty_starts) heal(settings);
  double lost_at_s = 0;
  if (std::ifstream(settings.state_file + ".lost") >> lost_at_s) {
    settings.is_absent = monotonic_s() - lost_at_s < settings.lost_for_s;
  }
  return Done{};
}

std::string name_of(std::uint32_t index) { return fmt::format("standin:{}", index); }

bool is_device(std::string_view name) {
  for (std::uint32_t i = 0; i < kStandinCount; ++i) {
    if (name == name_of(i)) return true;
  }
  return false;
}

Result<std::vector<std::uint32_t>> visible_devices() {
  const auto text = environment_variable(kStandinVisibleVariable.data());
  if (!text) return std::vector<std::uint32_t>{0, 1};
  std::vector<std::uint32_t> indices;
  for (const auto& word : split(*text, ',')) {
    std::uint32_t index = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), index);
    if (code != std::errc{} || end != word.data() + word.size()) {
      return invalid_error(fmt::format("{}: not a number: \"{}\"", kStandinVisibleVariable, word));
    }
    if (index >= kStandinCount) {
      return invalid_error(fmt::format("{}: there are 0 to {}: {}", kStandinVisibleVariable,
                                       kStandinCount - 1, index));
    }
    indices.push_back(index);
  }
  return indices;
}

}  // namespace

bool DeviceSettings::is_due(double after_s) const {
  const auto age_s = monotonic_s() - first_start_s;
  const bool is_well_again = recover_after_s >= 0 && age_s >= recover_after_s;
  return after_s >= 0 && age_s >= after_s && !is_well_again;
}

const char* device_error_text(DeviceError error) {
  switch (error) {
    case DeviceError::EccUncorrectable:
      return "uncorrectable ECC error encountered";
    case DeviceError::IllegalAddress:
      return "an illegal memory access was encountered";
    case DeviceError::LaunchTimeout:
      return "the launch timed out and was terminated";
    case DeviceError::Assert:
      return "device-side assert triggered";
    case DeviceError::LaunchFailure:
      return "unspecified launch failure";
    case DeviceError::DeviceLost:
      return "unknown error";
  }
  return "unknown error";
}

std::optional<std::uint32_t> xid_of(DeviceError error) {
  switch (error) {
    case DeviceError::EccUncorrectable:
      return 48;
    case DeviceError::IllegalAddress:
      return 31;
    case DeviceError::LaunchFailure:
      return 13;
    case DeviceError::DeviceLost:
      return 79;
    case DeviceError::LaunchTimeout:
    case DeviceError::Assert:
      return std::nullopt;
  }
  return std::nullopt;
}

Result<std::vector<DeviceSettings>> read_settings() {
  const auto all = Json::parse(environment_variable("STANDIN").value_or("{}"), nullptr, false);
  if (!all.is_object()) return invalid("it is no JSON object");
  for (const auto& [name, words] : all.items()) {
    if (name != "all" && !is_device(name)) return invalid("no such device: " + name);
    DeviceSettings unused;
    MUSTER_TRY(read_words(words, unused));
  }
  std::vector<DeviceSettings> devices;
  for (const auto index : MUSTER_TRY(visible_devices())) {
    DeviceSettings settings;
    settings.name = name_of(index);
    for (const auto& name : {std::string("all"), settings.name}) {
      if (all.contains(name)) MUSTER_TRY(read_words(all[name], settings));
    }
    MUSTER_TRY(count_start(settings));
    devices.push_back(std::move(settings));
  }
  return devices;
}

}  // namespace muster::standin
