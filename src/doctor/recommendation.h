#pragma once

#include <string>
#include <vector>

#include "config/schema.h"
#include "doctor/availability.h"
#include "doctor/facts.h"

namespace muster {

/// A setting worth writing down, and why.
struct RecommendedSetting {
  SettingId id = SettingId::Devices;
  std::string value;
  std::string because;
};

/// The settings that suit this machine by what was found: those that differ from what muster would
/// take by itself, and those whose finding out they save. Empty where no device is fit.
std::vector<RecommendedSetting> recommend_settings(const DoctorFacts& facts,
                                                   const Availability& availability);

/// The same as a file for --config, a comment before each key. Values are quoted, so that any text
/// reads back as itself.
std::string recommendation_yaml(const std::vector<RecommendedSetting>& settings);

}  // namespace muster
