#include "hw/cpu/host_memory.h"

#include <algorithm>

#include "hw/kernel_file.h"

namespace muster {

std::optional<std::uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view name) {
  while (!meminfo.empty()) {
    const auto length = std::min(meminfo.find('\n'), meminfo.size());
    const auto line = meminfo.substr(0, length);
    meminfo.remove_prefix(std::min(length + 1, meminfo.size()));
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto words = line.substr(0, colon);
    const auto last = words.substr(words.rfind(' ') + 1);  // npos + 1 is 0: the whole
    if (last != name) continue;
    const auto kib = leading_number(line.substr(colon + 1));
    constexpr std::int64_t kKibMax = std::int64_t{1} << 52;
    if (!kib || *kib < 0 || *kib > kKibMax) return std::nullopt;
    return static_cast<std::uint64_t>(*kib) * 1024;
  }
  return std::nullopt;
}

}  // namespace muster
