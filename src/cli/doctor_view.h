#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "doctor/availability.h"
#include "doctor/check.h"
#include "doctor/facts.h"
#include "doctor/recommendation.h"

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
/// with `shows_all`. Lines of at most `width` columns.
std::string doctor_text(const DoctorReport& report, std::size_t width, bool shows_all);

/// For programs. Source: docs/doctor.md.
std::string doctor_json(const DoctorReport& report);

}  // namespace muster
