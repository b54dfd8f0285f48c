// Reads the facts and judges nothing. All paths lie below `root`, so a recorded machine can be
// examined like a live one. Small files of /proc and /sys are read whole with a limit; a file
// that is missing or malformed leaves its fact unknown, as no single one of them is needed.

#include "doctor/system_facts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/file.h"
#include "base/text.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSmallFile = 1 << 16;

std::optional<std::string> small_file(const fs::path& path) {
  auto text = read_file(path, kSmallFile);
  if (!text) return std::nullopt;
  return std::string(trim(*text));
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    entries.push_back(at->path());
  }
  return entries;
}

// Display controllers of NVIDIA: VGA (0x0300) and 3D (0x0302). Source: PCI Code and ID Assignment
// Specification 1.12, class 03h; vendor 10de: pci.ids.
std::uint32_t count_nvidia_gpus(const fs::path& root) {
  std::uint32_t count = 0;
  for (const auto& device : entries_of(root / "sys/bus/pci/devices")) {
    const auto kind = small_file(device / "class").value_or("");
    const bool is_display = kind.starts_with("0x0300") || kind.starts_with("0x0302");
    if (is_display && small_file(device / "vendor") == "0x10de") ++count;
  }
  return count;
}

// Readable package domains of RAPL; the energy counter is for root alone since Linux 5.10.
Result<std::uint32_t> count_energy_domains(const fs::path& root) {
  std::uint32_t count = 0;
  std::optional<Error> refused;
  for (const auto& domain : entries_of(root / "sys/class/powercap")) {
    const auto name = domain.filename().string();
    if (!name.starts_with("intel-rapl:") || name.find(':') != name.rfind(':')) continue;
    const auto counter = read_file(domain / "energy_uj", kSmallFile);
    if (counter) {
      ++count;
    } else {
      refused = Error{ErrorKind::Unavailable, counter.error().message};
    }
  }
  if (refused) return *refused;
  if (count > 0) return count;
  return Error{ErrorKind::NotFound, "this machine has no RAPL energy counter"};
}

Result<std::string> read_clock_source(const fs::path& root) {
  const auto file = root / "sys/devices/system/clocksource/clocksource0/current_clocksource";
  if (const auto name = small_file(file)) return *name;
  return Error{ErrorKind::Unavailable, fmt::format("{} cannot be read", file.string())};
}

std::uint64_t soft_open_file_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// Seconds since the start, which turn the log's times into those of the clock; 0 where unknown.
double read_uptime(const fs::path& root) {
  const auto text = small_file(root / "proc/uptime").value_or("");
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::optional<std::uint32_t> count_cpu_list(std::string_view list) {
  std::uint32_t count = 0;
  for (const auto& piece : split(trim(list), ',')) {
    const auto dash = piece.find('-');
    std::uint32_t first = 0;
    const auto* end = piece.data() + piece.size();
    const auto begin = std::from_chars(piece.data(), end, first);
    std::uint32_t last = first;
    auto finish = begin;
    if (dash != std::string::npos) finish = std::from_chars(piece.data() + dash + 1, end, last);
    if (begin.ec != std::errc{} || finish.ec != std::errc{} || finish.ptr != end || last < first) {
      return std::nullopt;
    }
    count += last - first + 1;
  }
  return count;
}

std::optional<std::string> module_version(std::string_view text) {
  for (const auto& word : split(text.substr(0, text.find('\n')), ' ')) {
    const bool is_version = word.find('.') != std::string::npos &&
                            word.find_first_not_of("0123456789.") == std::string::npos;
    if (is_version) return word;
  }
  return std::nullopt;
}

// The folder itself is often made on first use; its nearest ancestor is on the same file system.
Result<FolderFacts> read_folder_facts(const fs::path& folder) {
  std::error_code ignored;
  auto place = fs::absolute(folder, ignored);
  while (!fs::exists(place, ignored) && place.has_relative_path()) place = place.parent_path();
  struct statvfs system {};
  if (::statvfs(place.c_str(), &system) != 0) {
    return Error{errno == ENOENT ? ErrorKind::NotFound : ErrorKind::Unavailable,
                 fmt::format("{}: {}", folder.string(), std::strerror(errno))};
  }
  return FolderFacts{.folder = folder,
                     .is_writable = ::access(place.c_str(), W_OK) == 0,
                     .size_bytes = system.f_blocks * system.f_frsize,
                     .free_bytes = system.f_bavail * system.f_frsize};
}

SystemFacts read_system_facts(const fs::path& root) {
  SystemFacts facts;
  facts.nvidia_gpus_on_bus = count_nvidia_gpus(root);
  if (const auto text = small_file(root / "proc/driver/nvidia/version")) {
    facts.nvidia_module = module_version(*text);
  }
  facts.kernel_xids = read_kernel_xids(root);
  facts.seconds_since_boot = read_uptime(root);
  if (const auto online = small_file(root / "sys/devices/system/cpu/online")) {
    facts.cpus_online = count_cpu_list(*online);
  }
  facts.open_files_max = soft_open_file_limit();
  facts.energy_domains = count_energy_domains(root);
  facts.clock_source = read_clock_source(root);
  std::error_code ignored;
  if (fs::is_directory(root / "dev/shm", ignored)) {
    facts.shared_memory = read_folder_facts(root / "dev/shm");
  } else {
    facts.shared_memory = Error{ErrorKind::NotFound, "there is no /dev/shm"};
  }
  return facts;
}

}  // namespace muster
