// Settings worth writing down, from what was found. Only what differs from the default, or saves
// finding it out again, is recommended, each with its reason. The output is YAML for --config,
// and a device name or path may hold anything, so values are quoted and reasons are comments
// in every line.

#include "doctor/recommendation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace muster {
namespace {

bool is_cpu_name(const std::string& name) { return name.starts_with("cpu"); }

// GPUs where there are fit ones: a CPU beside them would only take its share of the texts slower.
std::vector<std::string> chosen_devices(const Availability& availability) {
  std::vector<std::string> gpus;
  for (const auto& name : availability.available) {
    if (!is_cpu_name(name)) gpus.push_back(name);
  }
  return gpus.empty() ? availability.available : gpus;
}

RecommendedSetting devices_setting(const Availability& availability,
                                   const std::vector<std::string>& chosen) {
  RecommendedSetting setting{.id = SettingId::Devices,
                             .value = fmt::format("{}", fmt::join(chosen, ",")),
                             .because = "every fit device of the fastest kind"};
  if (!availability.unavailable.empty()) {
    setting.because =
        fmt::format("not fit, or not here: {}", fmt::join(availability.unavailable, ", "));
  }
  return setting;
}

// Fp32 without a measurement where no narrower format is faster on any chosen device.
// 5 %: what `--precision auto` asks for too (jobs/precision_choice.h).
std::optional<RecommendedSetting> precision_setting(const DoctorFacts& facts,
                                                    const std::vector<std::string>& chosen) {
  constexpr double kWorthwhile = 1.05;
  double best = 0;
  for (const auto& outcome : facts.compute) {
    const bool is_chosen =
        std::find(chosen.begin(), chosen.end(), outcome.device.name()) != chosen.end();
    if (!is_chosen || outcome.speeds.empty()) continue;
    for (const auto& speed : outcome.speeds) {
      best = std::max(best,
                      speed.own_flops_per_second() / outcome.speeds.front().own_flops_per_second());
    }
  }
  if (best == 0) return std::nullopt;
  if (best < kWorthwhile) {
    return RecommendedSetting{.id = SettingId::Precision,
                              .value = "fp32",
                              .because =
                                  "no narrower format multiplies faster here, so nothing "
                                  "has to be measured for each model"};
  }
  return RecommendedSetting{
      .id = SettingId::Precision,
      .value = "auto",
      .because = fmt::format("a narrower format multiplies {:.1f} times as fast; auto takes it "
                             "where the model's vectors stay near fp32's",
                             best)};
}

// A quota of CPU time below the cores, shared by the CPU devices.
std::optional<RecommendedSetting> cores_setting(const DoctorFacts& facts,
                                                const std::vector<std::string>& chosen) {
  const auto limit = facts.inventory.cpu_limit_cores;
  if (!limit || *limit >= facts.inventory.core_count || !is_cpu_name(chosen.front())) {
    return std::nullopt;
  }
  const auto cores = std::floor(*limit / static_cast<double>(chosen.size()));
  return RecommendedSetting{
      .id = SettingId::CoresPerDevice,
      .value = fmt::format("{:.0f}", std::max(1.0, cores)),
      .because =
          fmt::format("the cgroup allows {:g} cores; more lanes would only be held up", *limit)};
}

// A single-quoted YAML scalar. Source: YAML 1.2.2, 7.3.2.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    result += c;
    if (c == '\'') result += c;
  }
  return result + "'";
}

// Its words in lines of at most 80 columns, each of them a comment, whatever a path or a driver put
// into the reason. A word that is longer has a line of its own.
std::string comment(std::string reason) {
  constexpr std::size_t kWidth = 80;
  std::replace_if(
      reason.begin(), reason.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; },
      ' ');
  std::string text = "#";
  std::size_t column = 1;
  for (const auto& word : split(reason, ' ')) {
    if (word.empty()) continue;
    if (column > 1 && column + 1 + word.size() > kWidth) {
      text += "\n#";
      column = 1;
    }
    text += " " + word;
    column += 1 + word.size();
  }
  return text;
}

}  // namespace

// Devices come first, as every other setting is chosen for them.
std::vector<RecommendedSetting> recommend_settings(const DoctorFacts& facts,
                                                   const Availability& availability) {
  const auto chosen = chosen_devices(availability);
  if (chosen.empty()) return {};
  std::vector<RecommendedSetting> settings{devices_setting(availability, chosen)};
  if (auto precision = precision_setting(facts, chosen)) settings.push_back(*std::move(precision));
  if (auto cores = cores_setting(facts, chosen)) settings.push_back(*std::move(cores));
  if (facts.torch) {
    settings.push_back(
        {.id = SettingId::TorchRoot,
         .value = facts.torch->root.string(),
         .because = fmt::format("torch {}, found by: {}", facts.torch->version, facts.torch->how)});
  }
  return settings;
}

std::string recommendation_yaml(const std::vector<RecommendedSetting>& settings) {
  std::string text;
  for (const auto& setting : settings) {
    text += fmt::format("{}\n{}: {}\n", comment(setting.because), setting_of(setting.id).name,
                        quoted(setting.value));
  }
  return text;
}

}  // namespace muster
