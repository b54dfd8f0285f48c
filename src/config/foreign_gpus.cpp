// Which GPUs the variables of other programs ask for. Several may describe the same devices; where
// they disagree, that is an error, because either choice would surprise somebody.

#include "config/foreign_gpus.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::uint32_t kGpusMost = 4096;  // as of device_count_most

constexpr std::string_view kAllGpusAlike =
    "GPU_COUNT=0 takes all GPUs in their order, and none comes first; --devices or "
    "SECONDARY_GPU_IDS name them in another one";

// Whole numbers only: these lists never hold the UUIDs that our own setting takes as well.
Result<std::vector<std::uint32_t>> gpu_ids(const FoundForeign& found) {
  std::vector<std::uint32_t> ids;
  for (const auto& raw : split(found.value, ',')) {
    const auto text = trim(raw);
    std::uint32_t id = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (code != std::errc{} || end != text.data() + text.size()) {
      return invalid_foreign(found.name, "numbers of GPUs with commas between, such as 0,2",
                             found.value);
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

const FoundForeign* find_use(const std::vector<FoundForeign>& all, ForeignUse use) {
  for (const auto& found : all) {
    if (found.row->use == use) return &found;
  }
  return nullptr;
}

Error disagree(const FoundForeign& count, const FoundForeign& ids) {
  return Error{ErrorKind::InvalidArgument, fmt::format("{}={} and {}={} disagree", count.name,
                                                       count.value, ids.name, ids.value)};
}

std::optional<GivenValue> devices(std::string value, const std::string& place) {
  return GivenValue{SettingId::Devices, std::move(value), place};
}

}  // namespace

Error invalid_foreign(const std::string& name, std::string_view must, const std::string& value) {
  return Error{ErrorKind::InvalidArgument, fmt::format("{} must be {}: \"{}\"", name, must, value)};
}

void UnmetNames::add(std::string_view reason, std::string name) {
  auto& names = names_[std::string(reason)];
  if (names.empty()) reasons_.push_back(reason);
  names.push_back(std::move(name));
}

std::vector<std::string> UnmetNames::warnings() const {
  if (reasons_.empty()) return {};
  std::vector<std::string> parts;
  for (const auto reason : reasons_) {
    parts.push_back(
        fmt::format("{} ({})", fmt::join(names_.at(std::string(reason)), ", "), reason));
  }
  return {
      fmt::format("the environment asks for what muster does not do: {}", fmt::join(parts, "; "))};
}

Result<std::string> foreign_gpu_list(const FoundForeign& found) {
  const auto ids = MUSTER_TRY(gpu_ids(found));
  return device_list(ids);
}

Result<std::optional<GivenValue>> chosen_gpus(const std::vector<FoundForeign>& all,
                                              UnmetNames& unmet) {
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
      return invalid_foreign(count->name, fmt::format("a whole number from 0 to {}", kGpusMost),
                             count->value);
    }
    wanted = numbers->front();
  }
  std::vector<std::uint32_t> ids;
  for (const auto* found : {primary, secondary}) {
    if (found == nullptr) continue;
    const auto more = MUSTER_TRY(gpu_ids(*found));
    if (found == primary && more.size() != 1) {
      return invalid_foreign(found->name, "the number of a GPU", found->value);
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

}  // namespace muster
