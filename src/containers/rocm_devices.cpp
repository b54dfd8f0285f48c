// AMD GPUs are found in the kernel's compute topology, without any library of ROCm. A container
// gets a GPU by its render node, and the right to open it by the numeric groups of the device
// files: the image's own group names may have other numbers than this machine's.

#include "containers/rocm_devices.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/file.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPropertiesSizeMax = 64 << 10;

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Lines of "name value".
std::map<std::string, std::uint64_t> properties_of(const std::string& text) {
  std::map<std::string, std::uint64_t> properties;
  std::istringstream lines(text);
  std::string name;
  std::uint64_t value = 0;
  while (lines >> name >> value) properties[name] = value;
  return properties;
}

void add_group(const fs::path& file, std::set<std::uint32_t>& groups) {
  struct stat status {};
  // Files of the superuser's group are not opened to anybody by adding that group.
  if (stat(file.c_str(), &status) == 0 && status.st_gid != 0) groups.insert(status.st_gid);
}

}  // namespace

RocmHost find_rocm_gpus(const fs::path& root) {
  // Ordered by node number, since a folder is listed in any order.
  std::map<std::uint32_t, std::uint64_t> minors;  // node number -> render minor
  std::error_code ignored;
  const auto nodes = root / "sys/class/kfd/kfd/topology/nodes";
  for (const auto& entry : fs::directory_iterator(nodes, ignored)) {
    const auto node = number(entry.path().filename().string());
    const auto text = read_file(entry.path() / "properties", kPropertiesSizeMax);
    if (!node || !text) continue;
    auto properties = properties_of(*text);
    if (properties["simd_count"] > 0 && properties["drm_render_minor"] > 0) {
      minors[*node] = properties["drm_render_minor"];
    }
  }
  RocmHost host;
  std::set<std::uint32_t> groups;
  for (const auto& [node, minor] : minors) {
    host.gpus.push_back({fmt::format("/dev/dri/renderD{}", minor)});
    add_group(root / host.gpus.back().render_file.substr(1), groups);
  }
  if (!host.gpus.empty()) add_group(root / "dev/kfd", groups);
  host.group_ids.assign(groups.begin(), groups.end());
  return host;
}

}  // namespace muster
