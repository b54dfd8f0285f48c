// Energy counters of the processor that wrap within minutes. The exact turn of a counter is not
// shown by the kernel, only a rounded range, from which the step is found again; an error of a step
// in each turn would add up over weeks. Zones are summed by socket, and only the whole packages and
// their memory, since other zones are parts of them. Sources are in the header.

#include "hw/cpu/rapl.h"

#include <algorithm>
#include <cerrno>

#include "base/text.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// More zones than any machine has; the folder of a wrong root is not walked to its end.
constexpr std::size_t kZonesMax = 1024;

constexpr std::uint64_t kCounterMax = 0xffffffffU;

// "package-1", "package-1-die-0" → 1.
std::optional<std::uint32_t> package_of(std::string_view name) {
  constexpr std::string_view kPrefix = "package-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto number = leading_number(name.substr(kPrefix.size()));
  return number && *number >= 0 ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

RaplDomain domain_of(std::string_view name) {
  if (package_of(name)) return RaplDomain::Package;
  if (name == "dram") return RaplDomain::Dram;
  if (name == "psys") return RaplDomain::Psys;
  return RaplDomain::Part;
}

// The nanojoules of a step; nullopt when no 32-bit counter has this range.
std::optional<std::uint64_t> step_nj(std::uint64_t range_uj) {
  // A step above a second of a kilowatt is none; the bound keeps the products in 64 bits.
  constexpr std::uint64_t kStepMaxNj = 1'000'000'000;
  if (range_uj > kCounterMax * (kStepMaxNj / 1000)) return std::nullopt;
  const auto step = (range_uj * 1000 + kCounterMax - 1) / kCounterMax;
  return kCounterMax * step / 1000 == range_uj ? std::optional(step) : std::nullopt;
}

std::uint64_t turn_nj(std::uint64_t range_uj) {
  if (const auto step = step_nj(range_uj)) return (kCounterMax + 1) * *step;
  return (range_uj + 1) * 1000;
}

}  // namespace

std::vector<RaplZone> find_rapl_zones(const fs::path& root) {
  std::vector<RaplZone> zones;
  std::error_code ignored;
  for (fs::directory_iterator entry(root / "sys/class/powercap", ignored), end;
       entry != end && zones.size() < kZonesMax; entry.increment(ignored)) {
    const auto file_name = entry->path().filename().string();
    if (!file_name.starts_with("intel-rapl:")) continue;
    const auto name = small_text(entry->path() / "name");
    const auto range = small_text(entry->path() / "max_energy_range_uj");
    const auto range_uj = range ? leading_number(*range) : std::nullopt;
    if (!name || !range_uj || *range_uj <= 0) continue;
    // A sub-zone belongs to the package whose zone is named in front: "intel-rapl:0:1".
    const auto is_part = std::count(file_name.begin(), file_name.end(), ':') > 1;
    const auto above = entry->path().parent_path() / file_name.substr(0, file_name.rfind(':'));
    const auto owner = is_part ? small_text(above / "name") : name;
    zones.push_back({.domain = domain_of(*name),
                     .package = owner ? package_of(*owner) : std::nullopt,
                     .folder = entry->path(),
                     .range_uj = static_cast<std::uint64_t>(*range_uj)});
  }
  std::sort(zones.begin(), zones.end(),
            [](const RaplZone& a, const RaplZone& b) { return a.folder < b.folder; });
  return zones;
}

RaplCounter::RaplCounter(std::uint64_t range_uj) : turn_nj_(turn_nj(range_uj)) {}

double RaplCounter::add(std::uint64_t energy_uj) {
  if (!first_uj_) first_uj_ = energy_uj;
  if (first_uj_ && energy_uj < last_uj_) ++turns_;
  last_uj_ = energy_uj;
  // A turn in whole microjoules and the rest of it apart: exact for as long as a machine lives.
  const auto whole_uj = static_cast<std::int64_t>(turns_ * (turn_nj_ / 1000) + energy_uj) -
                        static_cast<std::int64_t>(*first_uj_);
  const auto rest_nj = turns_ * (turn_nj_ % 1000);
  return static_cast<double>(whole_uj) * 1e-6 + static_cast<double>(rest_nj) * 1e-9;
}

RaplEnergy::RaplEnergy(const std::vector<RaplZone>& zones, RaplDomain domain,
                       std::uint32_t package) {
  for (const auto& zone : zones) {
    if (zone.domain != domain || zone.package != package) continue;
    parts_.push_back(
        {KernelFile("read energy_uj", zone.folder / "energy_uj"), RaplCounter(zone.range_uj)});
  }
}

void RaplEnergy::read(Reading reading, CallWatch& watch, DeviceSample& sample) {
  if (parts_.empty()) return;
  double joules = 0;
  for (auto& part : parts_) {
    const auto code = part.file.read(watch, sample);
    const auto energy = code == 0 ? leading_number(part.file.text()) : std::nullopt;
    if (!energy || *energy < 0) {
      sample.errors.push_back({reading, code == 0 ? EBADMSG : code});
      return;
    }
    joules += part.counter.add(static_cast<std::uint64_t>(*energy));
  }
  sample.readings.set(reading, joules);
}

}  // namespace muster
