#include "faults.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace muster {
namespace {

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void count_start(Faults& faults) {
  faults.first_start_s = monotonic_s();
  if (faults.state_file.empty()) return;
  std::uint32_t count = 0;
  double first_s = 0;
  if (std::ifstream(faults.state_file) >> count >> first_s) {
    faults.start_count = count + 1;
    faults.first_start_s = first_s;
  }
  std::ofstream(faults.state_file)
      << fmt::format("{} {:.9f}\n", faults.start_count, faults.first_start_s);
}

Status read_fault(const std::string& name, const nlohmann::json& value, Faults& faults) {
  if (name == "slow_after_s") {
    faults.slow_after_s = value.get<double>();
  } else if (name == "slow_factor") {
    faults.slow_factor = value.get<double>();
  } else if (name == "lie_after_s") {
    faults.lie_after_s = value.get<double>();
  } else if (name == "recover_after_s") {
    faults.recover_after_s = value.get<double>();
  } else if (name == "crash_at_start") {
    faults.crash_at_start = value.get<std::uint32_t>();
  } else if (name == "oom_above_tokens") {
    faults.oom_above_tokens = value.get<std::uint64_t>();
  } else if (name == "abort_on_token") {
    faults.abort_on_token = value.get<std::uint32_t>();
  } else if (name == "batch_us_per_token") {
    faults.batch_us_per_token = value.get<std::uint64_t>();
  } else if (name == "state_file") {
    faults.state_file = value.get<std::string>();
  } else {
    return Error{ErrorKind::InvalidArgument, fmt::format("FAULTY_WORKER: no such fault: {}", name)};
  }
  return Done{};
}

}  // namespace

double Faults::age_s() const { return monotonic_s() - first_start_s; }

Result<Faults> read_faults(const std::string& device) {
  Faults faults;
  const char* text = std::getenv("FAULTY_WORKER");
  const auto all = nlohmann::json::parse(text == nullptr ? "{}" : text, nullptr, false);
  if (!all.is_object()) return Error{ErrorKind::InvalidArgument, "FAULTY_WORKER is no JSON object"};
  const auto own = all.find(device);
  if (own != all.end()) {
    for (const auto& [name, value] : own->items()) {
      MUSTER_TRY(read_fault(name, value, faults));
    }
  }
  count_start(faults);
  return faults;
}

}  // namespace muster
