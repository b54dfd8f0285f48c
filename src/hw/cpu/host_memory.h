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

/// Bytes that programs could still get: the machine's MemAvailable; of a node, which has no such
/// line, what is free, what the page cache holds of files, and what slabs could give back. The
/// kernel keeps a little of that (its watermarks), so that a node is told less than 1 % too much.
/// nullopt where a line is missing.
///
/// Source: proc(5), MemAvailable; Linux, mm/show_mem.c, si_mem_available.
std::optional<std::uint64_t> available_bytes(std::string_view meminfo);

}  // namespace muster
