#pragma once

#include <string>
#include <vector>

#include "doctor/availability.h"
#include "doctor/check.h"
#include "doctor/facts.h"
#include "doctor/recommendation.h"
#include "terminal/terminal_info.h"

namespace muster {

/// All that an examination has come to.
struct DoctorReport {
  std::string machine;
  std::vector<Check> checks;
  Availability availability;
  std::vector<ComputeOutcome> compute;
  std::vector<RecommendedSetting> recommended;
};

/// For people: what is wrong first, with what to do about it; what is well in short, or every check
/// with `shows_all`. Wrapped between words at the terminal's width; verdicts in colour where it has
/// colours.
std::string doctor_text(const DoctorReport& report, const TerminalInfo& terminal, bool shows_all);

/// For programs. Source: docs/doctor.md.
std::string doctor_json(const DoctorReport& report);

}  // namespace muster
