#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster {

/// The bytes of a line "MemTotal:  16384 kB" of /proc/meminfo, or "Node 0 MemTotal:  16384 kB" of
/// a node's; nullopt when there is none. The kernel writes kB and means KiB.
///
/// Source: proc(5); Linux, drivers/base/node.c, node_read_meminfo.
std::optional<std::uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view name);

}  // namespace muster
