#include "config/foreign_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::uint32_t kGpusMost = 4096;  // as of device_count_most

// A variable that is set, and its row.
struct Found {
  const ForeignName* row = nullptr;
  std::string name;
  std::string value;
};

Error invalid(const std::string& name, std::string_view must, const std::string& value) {
  return Error{ErrorKind::InvalidArgument, fmt::format("{} must be {}: \"{}\"", name, must, value)};
}

Error refused(const Found& found) {
  return Error{ErrorKind::Unsupported, fmt::format("{}={}: {}; unset it to go on", found.name,
                                                   found.value, found.row->reason)};
}

const ForeignName* row_of(std::string_view name) {
  const ForeignName* by_beginning = nullptr;
  for (const auto& row : foreign_names()) {
    if (row.name == name) return &row;
    if (row.name.ends_with('*') && name.starts_with(row.name.substr(0, row.name.size() - 1))) {
      by_beginning = &row;
    }
  }
  return by_beginning;
}

std::vector<Found> find_all(const std::vector<std::string>& environment) {
  std::vector<Found> all;
  for (const auto& entry : environment) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos || equals + 1 == entry.size()) continue;
    auto name = entry.substr(0, equals);
    if (const auto* row = row_of(name)) {
      all.push_back({row, std::move(name), entry.substr(equals + 1)});
    }
  }
  return all;
}

// "YES" -> "true", "Warning" -> "warning".
std::string plain_word(std::string_view value) {
  std::string word(trim(value));
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto* yes : {"1", "yes", "on"}) {
    if (word == yes) return "true";
  }
  for (const auto* no : {"0", "no", "off"}) {
    if (word == no) return "false";
  }
  return word;
}

bool is_switch(const ForeignName& row) {
  const auto& word = row.words.front().first;
  return word == "true" || word == "false";
}

// nullopt: it asks for what muster does anyhow.
Result<std::optional<std::string>> from_word(const Found& found) {
  const auto word = plain_word(found.value);
  std::vector<std::string> known;
  for (const auto& [theirs, ours] : found.row->words) {
    if (theirs == word) return ours.empty() ? std::nullopt : std::optional(std::string(ours));
    known.emplace_back(theirs);
  }
  if (is_switch(*found.row)) {
    if (word != "true" && word != "false") return invalid(found.name, "true or false", found.value);
    return refused(found);
  }
  if (!found.row->reason.empty()) return refused(found);
  return invalid(found.name, fmt::format("one of {}", fmt::join(known, ", ")), found.value);
}

Result<double> number(const Found& found, std::string_view must) {
  const auto text = trim(found.value);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) ||
      value < 0) {
    return invalid(found.name, must, found.value);
  }
  return value;
}

Result<std::vector<std::uint32_t>> gpu_ids(const Found& found) {
  std::vector<std::uint32_t> ids;
  for (const auto& raw : split(found.value, ',')) {
    const auto text = trim(raw);
    std::uint32_t id = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (code != std::errc{} || end != text.data() + text.size()) {
      return invalid(found.name, "numbers of GPUs with commas between, such as 0,2", found.value);
    }
    ids.push_back(id);
  }
  return ids;
}

std::string device_list(const std::vector<std::uint32_t>& ids) {
  std::string text;
  for (const auto id : ids) text += fmt::format("{}cuda:{}", text.empty() ? "" : ",", id);
  return text;
}

// The value of one variable by itself.
Result<std::optional<std::string>> own_value(const Found& found) {
  switch (found.row->use) {
    case ForeignUse::Value:
      return std::optional(found.value);
    case ForeignUse::Word:
      return from_word(found);
    case ForeignUse::Percent: {
      const auto percent = MUSTER_TRY(number(found, "a percentage above 0, at most 100"));
      if (percent == 0 || percent > 100) {
        return invalid(found.name, "a percentage above 0, at most 100", found.value);
      }
      return std::optional(fmt::format("{}", percent / 100));
    }
    case ForeignUse::Seconds: {
      const auto seconds = MUSTER_TRY(number(found, "a number of seconds"));
      return std::optional(fmt::format("{:.0f}ms", seconds * 1000));
    }
    case ForeignUse::GpuIds: {
      const auto ids = MUSTER_TRY(gpu_ids(found));
      return std::optional(device_list(ids));
    }
    case ForeignUse::GpuCount:
    case ForeignUse::PrimaryGpu:
    case ForeignUse::SecondaryGpus:
      return std::optional<std::string>();  // see `chosen_gpus`
    case ForeignUse::Refused:
      break;
  }
  return refused(found);
}

const Found* find_use(const std::vector<Found>& all, ForeignUse use) {
  for (const auto& found : all) {
    if (found.row->use == use) return &found;
  }
  return nullptr;
}

Error disagree(const Found& count, const Found& ids) {
  return Error{ErrorKind::InvalidArgument, fmt::format("{}={} and {}={} disagree", count.name,
                                                       count.value, ids.name, ids.value)};
}

std::optional<GivenValue> devices(std::string value, const std::string& place) {
  return GivenValue{SettingId::Devices, std::move(value), place};
}

// GPU_COUNT, PRIMARY_GPU_ID and SECONDARY_GPU_IDS as one list of devices. The count alone takes the
// first GPUs, 0 of them all that there are; the ids name them, and the count must then be theirs.
Result<std::optional<GivenValue>> chosen_gpus(const std::vector<Found>& all) {
  const auto* count = find_use(all, ForeignUse::GpuCount);
  const auto* primary = find_use(all, ForeignUse::PrimaryGpu);
  const auto* secondary = find_use(all, ForeignUse::SecondaryGpus);
  if (count == nullptr && primary == nullptr && secondary == nullptr) {
    return std::optional<GivenValue>();
  }
  std::uint32_t wanted = 0;
  if (count != nullptr) {
    const auto numbers = gpu_ids(*count);
    if (!numbers || numbers->size() != 1 || numbers->front() > kGpusMost) {
      return invalid(count->name, fmt::format("a whole number from 0 to {}", kGpusMost),
                     count->value);
    }
    wanted = numbers->front();
  }
  std::vector<std::uint32_t> ids;
  for (const auto* found : {primary, secondary}) {
    if (found == nullptr) continue;
    const auto more = MUSTER_TRY(gpu_ids(*found));
    if (found == primary && more.size() != 1) {
      return invalid(found->name, "the number of a GPU", found->value);
    }
    ids.insert(ids.end(), more.begin(), more.end());
  }
  const auto* first = primary != nullptr ? primary : secondary;
  if (count == nullptr) return devices(device_list(ids), first->name);
  if (secondary != nullptr) {
    if (wanted != 0 && wanted != ids.size()) return disagree(*count, *secondary);
    return devices(device_list(ids), secondary->name);
  }
  if (primary == nullptr) {
    if (wanted == 0) return std::optional<GivenValue>();  // as muster does anyhow
    return devices(fmt::format("{}xcuda", wanted), count->name);
  }
  const auto first_id = ids.front();
  if (wanted == 1) return devices(device_list(ids), primary->name);
  if (wanted == 0) {
    if (first_id == 0) return devices("auto", count->name);
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("{0}={1} takes all GPUs in their order, and {2}={3} wants another one "
                    "first: say how many with {0}, or name the others in SECONDARY_GPU_IDS",
                    count->name, count->value, primary->name, primary->value)};
  }
  if (first_id >= wanted) return disagree(*count, *primary);
  if (first_id == 0) return devices(fmt::format("{}xcuda", wanted), count->name);
  for (std::uint32_t id = 0; id < wanted; ++id) {
    if (id != first_id) ids.push_back(id);
  }
  return devices(device_list(ids), primary->name);
}

}  // namespace

std::vector<SetForeignName> foreign_names_in(const std::vector<std::string>& environment) {
  std::vector<SetForeignName> names;
  for (auto& found : find_all(environment)) names.push_back({std::move(found.name), found.row});
  return names;
}

Result<std::vector<GivenValue>> read_foreign_environment(
    const std::vector<std::string>& environment) {
  const auto all = find_all(environment);
  std::vector<GivenValue> given;
  for (const auto& found : all) {
    auto value = MUSTER_TRY(own_value(found));
    if (value) given.push_back({*found.row->setting, std::move(*value), found.name});
  }
  if (auto gpus = MUSTER_TRY(chosen_gpus(all))) given.push_back(std::move(*gpus));
  return given;
}

}  // namespace muster
