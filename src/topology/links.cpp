// Reads link matrices as nvidia-smi prints them. Where nothing could be read, the links of a board
// are assumed from its type: the fabric of the catalogue where all GPUs are alike, PCIe through the
// host bridge otherwise. A matrix must agree with itself in both directions: one that was cut or
// shifted by a column would otherwise give plausible links. A link is as fast as the slower of its
// two ends.

#include "topology/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/check.h"
#include "base/text.h"

namespace muster {
namespace {

struct LabelName {
  LinkKind kind;
  std::string_view name;
};

// The first name of a kind is the one that is written; "SOC" is what older drivers print for SYS.
constexpr std::array kPlainLabels{
    LabelName{LinkKind::Self, "X"},    LabelName{LinkKind::Pix, "PIX"},
    LabelName{LinkKind::Pxb, "PXB"},   LabelName{LinkKind::Phb, "PHB"},
    LabelName{LinkKind::Node, "NODE"}, LabelName{LinkKind::Sys, "SYS"},
    LabelName{LinkKind::Sys, "SOC"},
};

// No GPU has more; Blackwell has 18.
constexpr std::uint32_t kWidthMax = 64;

std::optional<std::uint32_t> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  std::uint32_t number = 0;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + prefix.size(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

// Words of a line, without the escapes that underline the header on a terminal.
std::vector<std::string> words_of(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i < line.size() && line[i] != 'm') ++i;
      continue;
    }
    const bool is_space = line[i] == '\t' || line[i] == '\r';
    plain.push_back(is_space ? ' ' : line[i]);
  }
  auto words = split(plain, ' ');
  std::erase(words, "");
  return words;
}

// How many columns "GPU0", "GPU1", … the line begins with.
// Only a run from GPU0 on counts: a legend may mention GPUs as well.
std::uint32_t leading_gpus(const std::vector<std::string>& words) {
  std::uint32_t count = 0;
  while (count < words.size() && number_after(words[count], "GPU") == count) ++count;
  return count;
}

Error bad(std::string_view what, std::string_view value) {
  return Error{ErrorKind::InvalidArgument,
               fmt::format("the link matrix {}: {}", what, value.substr(0, 60))};
}

// A type that is not in the catalogue is taken for one with the usual NVLink.
double slower_link(const GpuFacts* a, const GpuFacts* b) {
  const auto of = [](const GpuFacts* gpu) {
    return gpu != nullptr && gpu->link_count > 0 ? gpu->link_bytes_per_second
                                                 : kNvLinkBytesPerSecond;
  };
  return std::min(of(a), of(b));
}

double pcie_between(const GpuFacts* a, const GpuFacts* b) {
  const auto of = [](const GpuFacts* gpu) {
    return pcie_bytes_per_second(gpu != nullptr ? gpu->pcie_generation : 0);
  };
  return std::min(of(a), of(b));
}

Link link_of(LinkLabel label, const GpuFacts* a, const GpuFacts* b) {
  double bytes = 0.0;
  switch (label.kind) {
    case LinkKind::Self:
      break;
    case LinkKind::NvLink:
    case LinkKind::Xgmi:
      bytes = slower_link(a, b) * label.width;
      break;
    case LinkKind::Pix:
    case LinkKind::Pxb:
    case LinkKind::Phb:
    case LinkKind::Node:
      bytes = pcie_between(a, b);
      break;
    case LinkKind::Sys:
      bytes = std::min(pcie_between(a, b), kSocketBytesPerSecond);
      break;
  }
  return {label.kind, label.width, bytes};
}

}  // namespace

std::string link_label_name(LinkLabel label) {
  if (label.kind == LinkKind::NvLink) return fmt::format("NV{}", label.width);
  if (label.kind == LinkKind::Xgmi) return fmt::format("XGMI{}", label.width);
  const auto* found =
      std::find_if(kPlainLabels.begin(), kPlainLabels.end(),
                   [&](const LabelName& plain) { return plain.kind == label.kind; });
  return std::string(found->name);
}

std::optional<LinkLabel> parse_link_label(std::string_view text) {
  for (const auto& plain : kPlainLabels) {
    if (plain.name == text) return LinkLabel{plain.kind, 0};
  }
  const auto is_width = [](std::optional<std::uint32_t> width) {
    return width && *width > 0 && *width <= kWidthMax;
  };
  if (const auto width = number_after(text, "NV"); is_width(width)) {
    return LinkLabel{LinkKind::NvLink, *width};
  }
  if (const auto width = number_after(text, "XGMI"); is_width(width)) {
    return LinkLabel{LinkKind::Xgmi, *width};
  }
  return std::nullopt;
}

// Rows of network cards, the legend and the columns of affinity stand around the matrix in the same
// output: whatever is no row of the next GPU is skipped.
Result<LinkMatrix> parse_link_matrix(std::string_view text) {
  LinkMatrix matrix;
  std::uint32_t row = 0;
  for (const auto& line : split(text, '\n')) {
    const auto words = words_of(line);
    if (matrix.device_count == 0) {
      matrix.device_count = leading_gpus(words);
      if (matrix.device_count > kNodeDevicesMax) {
        return bad("has too many GPUs", std::to_string(matrix.device_count));
      }
      // A line "GPU0 X" is a row and no header.
      if (matrix.device_count > 0 && words.size() > 1 && words[1] == "X") {
        return bad("has no header above its row", words[0]);
      }
      continue;
    }
    if (row == matrix.device_count) break;
    if (words.empty() || number_after(words[0], "GPU") != row) continue;
    if (words.size() <= matrix.device_count) return bad("has a short row", words[0]);
    for (std::uint32_t column = 0; column < matrix.device_count; ++column) {
      const auto label = parse_link_label(words[column + 1]);
      if (!label) return bad("has an unknown link", words[column + 1]);
      if ((label->kind == LinkKind::Self) != (row == column)) {
        return bad("has an X beside its diagonal, or none on it, in the row", words[0]);
      }
      matrix.labels.push_back(*label);
    }
    ++row;
  }
  if (matrix.device_count == 0) return bad("has no header of GPUs", "GPU0 GPU1 …");
  if (row < matrix.device_count) return bad("lacks the row", fmt::format("GPU{}", row));
  const auto n = matrix.device_count;
  for (std::uint32_t a = 0; a < n; ++a) {
    for (std::uint32_t b = 0; b < a; ++b) {
      const auto& one = matrix.labels[a * n + b];
      const auto& other = matrix.labels[b * n + a];
      if (one.kind != other.kind || one.width != other.width) {
        return bad("differs in its two directions", fmt::format("GPU{} and GPU{}", b, a));
      }
    }
  }
  return matrix;
}

// Rates are of one direction and between two devices alone: shared bridges are not modelled.
NodeLinks links_of(const LinkMatrix& matrix, std::span<const GpuFacts* const> gpus) {
  const auto n = matrix.device_count;
  MUSTER_CHECK(gpus.size() == n);
  NodeLinks links{n, {}};
  links.links.reserve(std::size_t{n} * n);
  for (std::uint32_t a = 0; a < n; ++a) {
    for (std::uint32_t b = 0; b < n; ++b) {
      links.links.push_back(link_of(matrix.labels[a * n + b], gpus[a], gpus[b]));
    }
  }
  return links;
}

// A matrix is assumed only for GPUs of one type: how mixed boards are wired cannot be guessed.
LinkMatrix assumed_links(std::span<const GpuFacts* const> gpus) {
  const auto n = static_cast<std::uint32_t>(gpus.size());
  LinkLabel label{LinkKind::Phb, 0};
  const auto* first = gpus.empty() ? nullptr : gpus.front();
  const bool is_one_type = first != nullptr && std::all_of(gpus.begin(), gpus.end(),
                                                           [&](auto* gpu) { return gpu == first; });
  if (is_one_type) {
    const auto kind = first->kind == DeviceKind::Rocm ? LinkKind::Xgmi : LinkKind::NvLink;
    // A board has at most eight of a mesh: a link for each of the others.
    if (first->fabric == GpuFabric::Switch) label = {kind, first->link_count};
    if (first->fabric == GpuFabric::Mesh && n <= first->link_count + 1) label = {kind, 1};
  }
  LinkMatrix matrix{n, std::vector<LinkLabel>(std::size_t{n} * n, label)};
  for (std::uint32_t i = 0; i < n; ++i) matrix.labels[i * n + i] = {LinkKind::Self, 0};
  return matrix;
}

}  // namespace muster
