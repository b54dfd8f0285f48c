// A limit anywhere above a process holds for it, so all ancestors are walked and the tightest wins.
// Where a group's folder is depends on how the hierarchy was mounted: a container may see a part of
// it, whose path must be cut off, or a mount that begins above its namespace. Both versions can be
// mounted at once. Page cache that is not in use counts as free, because the kernel drops it before
// it refuses memory. Sources are in the header.

#include "hw/cpu/cgroup.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// v1 writes "no limit" as the largest page-aligned number below 2^63.
constexpr std::uint64_t kV1NoLimit = 1ULL << 62;

// Files of the kernel's own file systems are small; a wrong root must not read a disk.
constexpr std::uint64_t kFileSizeMax = 4 << 20;

struct Mount {
  std::string root;         // which folder of the hierarchy is mounted
  std::string mount_point;  // where
  bool is_v2 = false;
  std::vector<std::string> controllers;  // v1: "memory", "cpu,cpuacct" in pieces
};

std::optional<std::uint64_t> parse_number(std::string_view text) {
  text = trim(text);
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> read_number(const fs::path& path) {
  const auto text = read_file(path, kFileSizeMax);
  return text ? parse_number(*text) : std::nullopt;
}

// A line of mountinfo: "36 35 0:30 /root /mount/point options - type source super,options".
std::vector<Mount> cgroup_mounts(const std::string& mountinfo) {
  std::vector<Mount> mounts;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto head = split(std::string_view(line).substr(0, dash), ' ');
    const auto tail = split(std::string_view(line).substr(dash + 3), ' ');
    if (head.size() < 5 || tail.size() < 3 || !tail[0].starts_with("cgroup")) continue;
    mounts.push_back({head[3], head[4], tail[0] == "cgroup2", split(tail[2], ',')});
  }
  return mounts;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The path of this process in the hierarchy of `mount`, from lines "4:memory:/a/b" and "0::/a/b".
std::optional<std::string> path_in(const Mount& mount, std::string_view controller,
                                   const std::string& self_cgroup) {
  std::istringstream lines(self_cgroup);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto names = split(std::string_view(line).substr(first + 1, second - first - 1), ',');
    const bool matches = mount.is_v2 ? line.starts_with("0::") : has(names, controller);
    if (matches) return line.substr(second + 1);
  }
  return std::nullopt;
}

bool is_within(std::string_view path, std::string_view folder) {
  return folder == "/" || path == folder ||
         (path.starts_with(folder) && path[folder.size()] == '/');
}

// "/..", "/../..": the mount begins above the namespace of this process.
bool is_above(std::string_view mount_root) {
  const auto parts = split(mount_root, '/');
  return std::all_of(parts.begin() + 1, parts.end(), [](auto& part) { return part == ".."; });
}

// The folders from the process's own cgroup up to the mount point. A mount that shows other groups,
// as of another container, has none.
std::vector<fs::path> ancestors(const fs::path& root, const Mount& mount, std::string path) {
  const auto top = root / fs::path(mount.mount_point).relative_path();
  if (is_above(mount.root)) return {top};
  if (!is_within(path, mount.root)) return {};
  // In a container the mount may show only a part of the hierarchy, whose name is then in front.
  if (mount.root != "/") path.erase(0, mount.root.size());
  std::vector<fs::path> folders;
  for (auto part = fs::path(path).relative_path(); !part.empty(); part = part.parent_path()) {
    folders.push_back(top / part);
  }
  folders.push_back(top);
  return folders;
}

template <typename T>
void tighten(std::optional<T>& limit, std::optional<T> candidate) {
  if (candidate && (!limit || *candidate < *limit)) limit = candidate;
}

// A line "inactive_file 1048576" of memory.stat.
std::optional<std::uint64_t> stat_number(std::string_view stat, std::string_view name) {
  while (!stat.empty()) {
    const auto length = std::min(stat.find('\n'), stat.size());
    const auto line = stat.substr(0, length);
    stat.remove_prefix(std::min(length + 1, stat.size()));
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ' ') {
      return parse_number(line.substr(name.size()));
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> below_no_limit(std::optional<std::uint64_t> limit) {
  return limit && *limit < kV1NoLimit ? limit : std::nullopt;
}

std::optional<double> cpu_limit(const fs::path& folder, bool is_v2) {
  std::optional<std::uint64_t> quota;
  std::optional<std::uint64_t> period;
  if (is_v2) {
    const auto text = read_file(folder / "cpu.max", kFileSizeMax);  // "max 100000", "150000 100000"
    if (!text) return std::nullopt;
    const auto words = split(trim(*text), ' ');
    quota = parse_number(words[0]);
    period = words.size() > 1 ? parse_number(words[1]) : std::nullopt;
  } else {
    quota = read_number(folder / "cpu.cfs_quota_us");  // -1: no limit, and no unsigned number
    period = read_number(folder / "cpu.cfs_period_us");
  }
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// Calls `on_group(folder, is_v2, is_own)` for every group whose limits of `controller` hold this
// process: its own, then those above it.
template <typename OnGroup>
void for_each_group(const fs::path& root, std::string_view controller, OnGroup on_group) {
  const auto mountinfo = read_file(root / "proc/self/mountinfo", kFileSizeMax);
  const auto self_cgroup = read_file(root / "proc/self/cgroup", kFileSizeMax);
  if (!mountinfo || !self_cgroup) return;
  for (const auto& mount : cgroup_mounts(*mountinfo)) {
    if (!mount.is_v2 && !has(mount.controllers, controller)) continue;
    const auto path = path_in(mount, controller, *self_cgroup);
    if (!path) continue;
    const auto folders = ancestors(root, mount, *path);
    for (const auto& folder : folders) on_group(folder, mount.is_v2, folder == folders.front());
  }
}

}  // namespace

CgroupMemory::CgroupMemory(const fs::path& root) {
  for_each_group(root, "memory", [this](const fs::path& folder, bool is_v2, bool is_own) {
    const auto* limit = is_v2 ? "memory.max" : "memory.limit_in_bytes";
    const auto* usage = is_v2 ? "memory.current" : "memory.usage_in_bytes";
    std::error_code ignored;
    if (!fs::exists(folder / limit, ignored)) return;  // the root of version 2 has none
    groups_.push_back({KernelFile("read cgroup limit", folder / limit),
                       KernelFile("read cgroup usage", folder / usage),
                       KernelFile("read cgroup memory.stat", folder / "memory.stat", 64 << 10),
                       is_v2, is_own, std::nullopt});
  });
}

void CgroupMemory::read_limits(CallWatch& watch, DeviceSample& sample) {
  for (auto& group : groups_) {
    auto& limit = group.limit_bytes;
    limit.reset();
    if (group.limit.read(watch, sample) != 0) continue;
    limit = below_no_limit(parse_number(group.limit.text()));  // "max" is no number
    // Version 1 tells the limit of ancestors that a container does not show in memory.stat alone.
    if (group.is_v2 || !group.is_own || group.stat.read(watch, sample) != 0) continue;
    tighten(limit, below_no_limit(stat_number(group.stat.text(), "hierarchical_memory_limit")));
  }
}

CgroupLimits CgroupMemory::read(CallWatch& watch, DeviceSample& sample) {
  CgroupLimits limits;
  for (auto& group : groups_) {
    if (!group.limit_bytes) continue;
    tighten(limits.memory_bytes, group.limit_bytes);
    auto left = *group.limit_bytes;
    const bool has_stat = group.stat.read(watch, sample) == 0;
    const auto stat = has_stat ? group.stat.text() : std::string_view();
    if (group.usage.read(watch, sample) == 0) {
      const auto used = parse_number(group.usage.text()).value_or(0);
      // Page cache that nobody uses is given back before anything is refused, so it counts as free.
      const auto* cache = group.is_v2 ? "inactive_file" : "total_inactive_file";
      const auto kept = used - std::min(used, stat_number(stat, cache).value_or(0));
      left -= std::min(left, kept);
    }
    tighten(limits.memory_available_bytes, std::optional(left));
  }
  return limits;
}

CgroupLimits read_cgroup_limits(const fs::path& root) {
  NoWatch watch;
  DeviceSample uncounted;
  CgroupMemory memory(root);
  memory.read_limits(watch, uncounted);
  auto limits = memory.read(watch, uncounted);
  for_each_group(root, "cpu", [&](const fs::path& folder, bool is_v2, bool) {
    tighten(limits.cpu_cores, cpu_limit(folder, is_v2));
  });
  return limits;
}

}  // namespace muster
