#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

namespace muster {

/// What is wrong with one device of a test; the words are those of FAULTY_WORKER (main.cpp).
struct Faults {
  double slow_after_s = -1;  // below 0: never
  double slow_factor = 10;
  double lie_after_s = -1;
  double recover_after_s = -1;  // slow, lying or full no more
  std::uint32_t crash_at_start = 0;
  std::uint32_t hang_at_start = 0;
  std::uint64_t oom_above_tokens = 0;  // 0: never
  std::optional<std::uint32_t> abort_on_token;
  std::uint64_t batch_us_per_token = 0;
  double fail_after_s = -1;
  std::uint32_t fail_from_batch = 0;  // of this process, counted from 1; 0: never
  std::optional<std::uint32_t> fail_on_token;
  std::optional<std::uint32_t> fail_from_token;
  ErrorKind fail_kind = ErrorKind::Internal;
  std::uint32_t nan_from_batch = 0;
  std::optional<std::uint32_t> nan_on_token;
  std::uint32_t short_from_batch = 0;  // a row too few
  std::uint32_t wide_from_batch = 0;   // rows a float too long
  std::uint32_t hang_at_batch = 0;
  std::uint32_t close_at_batch = 0;
  std::uint32_t load_ms = 0;
  std::optional<ErrorKind> fail_load;
  std::uint32_t unkillable_s = 0;  // from its start
  std::string state_file;
  std::string ill_file;  // empty: ill without one

  std::uint32_t start_count = 1;  // this one included; of the state file
  double first_start_s = 0;       // on the monotonic clock; of the state file, else now

  double age_s() const;
  bool is_failing(std::uint32_t batch) const {
    return is_due(fail_after_s) || is_from(fail_from_batch, batch);
  }
  bool is_from(std::uint32_t from, std::uint32_t batch) const {
    return from > 0 && batch >= from && !is_well_again();
  }
  bool is_well_again() const {
    if (!ill_file.empty() && !std::filesystem::exists(ill_file)) return true;
    return recover_after_s >= 0 && age_s() >= recover_after_s;
  }
  bool is_slow() const { return is_due(slow_after_s); }
  bool is_lying() const { return is_due(lie_after_s); }
  bool is_full(std::uint64_t tokens) const {
    return oom_above_tokens > 0 && tokens > oom_above_tokens && !is_well_again();
  }

 private:
  bool is_due(double after_s) const {
    return after_s >= 0 && age_s() >= after_s && !is_well_again();
  }
};

/// The faults of `device` from FAULTY_WORKER, and this start counted in its state file.
///
/// Errors: InvalidArgument for a word that is none, so that a test cannot misspell one.
Result<Faults> read_faults(const std::string& device);

}  // namespace muster
