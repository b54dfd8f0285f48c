#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/gpu_catalogue.h"
#include "spec/machine.h"

namespace muster {

/// A node has at most so many devices, as its links take their square; an NVL72 rack is one node.
inline constexpr std::uint32_t kNodeDevicesMax = 256;

/// "X", "NV12", "XGMI1", "PIX", "PXB", "PHB", "NODE", "SYS".
std::string link_label_name(LinkLabel label);
/// Also "SOC", which older drivers write for SYS. nullopt: none of them.
std::optional<LinkLabel> parse_link_label(std::string_view text);

/// The part of `nvidia-smi topo -m` that is about GPUs: rows and columns "GPU0", "GPU1", …, in
/// this order; network cards, affinities and the legend are passed over.
///
/// Errors: InvalidArgument, with the row at fault. Source: nvidia-smi(1), topo -m.
Result<LinkMatrix> parse_link_matrix(std::string_view text);

/// The links with what they carry. `gpus[i]`: what is known of device i, or nullptr.
///
/// NVLink: NCCL's figure for a link of the slower of the two GPUs, times its width. PCIe: x16 of
/// the older generation; over SYS no more than NCCL's figure for two sockets.
NodeLinks links_of(const LinkMatrix& matrix, std::span<const GpuFacts* const> gpus);

/// The links of a node of which only the GPUs are told: those of a switch or a mesh where all are
/// of one type that is made so, else PCIe through the host bridge. Bridges are not assumed.
LinkMatrix assumed_links(std::span<const GpuFacts* const> gpus);

}  // namespace muster
