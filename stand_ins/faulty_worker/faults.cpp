#include "faults.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <type_traits>

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

Result<ErrorKind> read_kind(const nlohmann::json& value) {
  const auto name = value.get<std::string>();
  for (const auto kind : {ErrorKind::InvalidArgument, ErrorKind::NotFound, ErrorKind::Unsupported,
                          ErrorKind::Corrupt, ErrorKind::ResourceExhausted, ErrorKind::Internal}) {
    if (error_kind_name(kind) == name) return kind;
  }
  return Error{ErrorKind::InvalidArgument,
               fmt::format("FAULTY_WORKER: no such kind of error: {}", name)};
}

Status read_fault(const std::string& name, const nlohmann::json& value, Faults& faults) {
  const auto is = [&](const char* word, auto& number) {
    if (name != word) return false;
    number = value.get<std::decay_t<decltype(number)>>();
    return true;
  };
  const auto is_token = [&](const char* word, std::optional<std::uint32_t>& token) {
    if (name != word) return false;
    token = value.get<std::uint32_t>();
    return true;
  };
  if (name == "fail_kind") {
    faults.fail_kind = MUSTER_TRY(read_kind(value));
    return Done{};
  }
  if (name == "fail_load") {
    faults.fail_load = MUSTER_TRY(read_kind(value));
    return Done{};
  }
  const bool is_known =
      is("slow_after_s", faults.slow_after_s) || is("slow_factor", faults.slow_factor) ||
      is("lie_after_s", faults.lie_after_s) || is("recover_after_s", faults.recover_after_s) ||
      is("crash_at_start", faults.crash_at_start) || is("hang_at_start", faults.hang_at_start) ||
      is("oom_above_tokens", faults.oom_above_tokens) ||
      is_token("abort_on_token", faults.abort_on_token) ||
      is("batch_us_per_token", faults.batch_us_per_token) || is("state_file", faults.state_file) ||
      is("fail_after_s", faults.fail_after_s) || is_token("fail_on_token", faults.fail_on_token) ||
      is_token("fail_from_token", faults.fail_from_token) ||
      is("fail_from_batch", faults.fail_from_batch) ||
      is("nan_from_batch", faults.nan_from_batch) ||
      is_token("nan_on_token", faults.nan_on_token) ||
      is("short_from_batch", faults.short_from_batch) ||
      is("wide_from_batch", faults.wide_from_batch) || is("hang_at_batch", faults.hang_at_batch) ||
      is("close_at_batch", faults.close_at_batch) || is("load_ms", faults.load_ms) ||
      is("unkillable_s", faults.unkillable_s) || is("ill_file", faults.ill_file);
  if (is_known) return Done{};
  return Error{ErrorKind::InvalidArgument, fmt::format("FAULTY_WORKER: no such fault: {}", name)};
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
