// Turns variables that other programs read (CUDA_VISIBLE_DEVICES-like lists, GPU_COUNT,
// EMBEDDING_BATCH_SIZE, ...) into settings or into one warning. Several variables may describe the
// same devices; where they disagree, that is an error, because either choice would surprise
// somebody.
// A variable has one of three outcomes: it becomes a setting, it asks for what happens anyhow,
// or it asks for what is not done. The last kind is gathered by reason into one warning, so that
// a container with twenty such variables starts with one line about them. A value that makes no
// sense is an error even so.

#include "config/foreign_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::uint32_t kGpusMost = 4096;  // as of device_count_most

constexpr std::string_view kAllGpusAlike =
    "GPU_COUNT=0 takes all GPUs in their order, and none comes first; --devices or "
    "SECONDARY_GPU_IDS name them in another one";

// A variable that is set, and its row.
struct Found {
  const ForeignName* row = nullptr;
  std::string name;
  std::string value;
};

Error invalid(const std::string& name, std::string_view must, const std::string& value) {
  return Error{ErrorKind::InvalidArgument, fmt::format("{} must be {}: \"{}\"", name, must, value)};
}

// What is asked for and not done: the names of each reason, in the order of the table.
class UnmetNames {
 public:
  void add(std::string_view reason, std::string name) {
    auto& names = names_[std::string(reason)];
    if (names.empty()) reasons_.push_back(reason);
    names.push_back(std::move(name));
  }

  std::vector<std::string> warnings() const {
    if (reasons_.empty()) return {};
    std::vector<std::string> parts;
    for (const auto reason : reasons_) {
      parts.push_back(
          fmt::format("{} ({})", fmt::join(names_.at(std::string(reason)), ", "), reason));
    }
    return {fmt::format("the environment asks for what muster does not do: {}",
                        fmt::join(parts, "; "))};
  }

 private:
  std::vector<std::string_view> reasons_;
  std::map<std::string, std::vector<std::string>> names_;  // by reason
};

// The meaning of a variable: a value, none where muster does so anyhow, or unmet.
struct OwnMeaning {
  std::optional<std::string> value = {};
  bool is_met = true;
};

// An exact name wins over a row that ends in "*", wherever the two stand in the table.
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
  const auto& word = row.words.front().theirs;
  return word == "true" || word == "false";
}

const ForeignWord* find_word(const Found& found) {
  const auto word = plain_word(found.value);
  for (const auto& candidate : found.row->words) {
    if (candidate.theirs == word) return &candidate;
  }
  return nullptr;
}

// Words that are known but not met are left out of the message: it should list only what helps.
Result<OwnMeaning> from_word(const Found& found) {
  if (const auto* word = find_word(found)) {
    if (!word->is_met) return OwnMeaning{.is_met = false};
    return word->ours.empty() ? OwnMeaning{} : OwnMeaning{.value = std::string(word->ours)};
  }
  if (is_switch(*found.row)) return invalid(found.name, "true or false", found.value);
  std::vector<std::string_view> known;
  for (const auto& word : found.row->words) {
    if (word.is_met) known.push_back(word.theirs);
  }
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

// Whole numbers only: these lists never hold the UUIDs that our own setting takes as well.
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

// What one variable says by itself.
Result<OwnMeaning> meaning_of(const Found& found) {
  switch (found.row->use) {
    case ForeignUse::Value: {
      const auto* word = find_word(found);
      return word != nullptr && !word->is_met ? OwnMeaning{.is_met = false}
                                              : OwnMeaning{.value = found.value};
    }
    case ForeignUse::Word:
      return from_word(found);
    case ForeignUse::Percent: {
      const auto percent = MUSTER_TRY(number(found, "a percentage above 0, at most 100"));
      if (percent == 0 || percent > 100) {
        return invalid(found.name, "a percentage above 0, at most 100", found.value);
      }
      return OwnMeaning{.value = fmt::format("{}", percent / 100)};
    }
    case ForeignUse::Seconds: {
      const auto seconds = MUSTER_TRY(number(found, "a number of seconds"));
      return OwnMeaning{.value = fmt::format("{:.0f}ms", seconds * 1000)};
    }
    case ForeignUse::GpuIds: {
      const auto ids = MUSTER_TRY(gpu_ids(found));
      return OwnMeaning{.value = device_list(ids)};
    }
    case ForeignUse::GpuCount:
    case ForeignUse::PrimaryGpu:
    case ForeignUse::SecondaryGpus:
      return OwnMeaning{};  // see `chosen_gpus`
    case ForeignUse::Unmet:
      break;
  }
  return OwnMeaning{.is_met = false};
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
Result<std::optional<GivenValue>> chosen_gpus(const std::vector<Found>& all, UnmetNames& unmet) {
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
    if (first_id != 0) {
      unmet.add(kAllGpusAlike, fmt::format("{}={}", primary->name, primary->value));
    }
    return devices("auto", count->name);
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

// First each variable by itself, then those that describe the GPUs together.
Result<EnvironmentValues> read_foreign_environment(const std::vector<std::string>& environment) {
  auto all = find_all(environment);
  // The environment has no order that means something; the table has.
  std::stable_sort(all.begin(), all.end(),
                   [](const Found& one, const Found& other) { return one.row < other.row; });
  EnvironmentValues values;
  UnmetNames unmet;
  for (const auto& found : all) {
    auto meaning = MUSTER_TRY(meaning_of(found));
    if (!meaning.is_met) {
      const bool is_whole = found.row->use == ForeignUse::Unmet;
      unmet.add(found.row->reason,
                is_whole ? found.name : fmt::format("{}={}", found.name, found.value));
    } else if (meaning.value) {
      values.given.push_back({*found.row->setting, std::move(*meaning.value), found.name});
    }
  }
  if (auto gpus = MUSTER_TRY(chosen_gpus(all, unmet))) values.given.push_back(std::move(*gpus));
  values.warnings = unmet.warnings();
  return values;
}

}  // namespace muster
