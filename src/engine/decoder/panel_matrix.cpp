// Packing tensors into panels, and dividing a product among the cores of a device.

#include "engine/decoder/panel_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/decoder/row_sharing.h"
#include "modelfile/dequantize.h"

namespace muster::engine {
namespace {

// Rows that meet a group of panels while it is in the second-level cache. A multiple of 6, 8 and
// 32, the strips of rows that kernels take.
constexpr std::size_t kRowsPerItem = 96;

std::optional<WeightFormat> own_format(const GgmlType& type) {
  switch (static_cast<GgmlTypeId>(type.id)) {
    case GgmlTypeId::F32:
      return WeightFormat::Fp32;
    case GgmlTypeId::BF16:
      return WeightFormat::Bf16;
    case GgmlTypeId::Q4_0:
      return WeightFormat::Q4_0;
    case GgmlTypeId::Q4_1:
      return WeightFormat::Q4_1;
    case GgmlTypeId::Q8_0:
      return WeightFormat::Q8_0;
    default:
      return std::nullopt;
  }
}

// Inputs of a packed row: whole blocks.
std::size_t packed_inputs(WeightFormat format, std::size_t count) {
  const std::size_t block = block_inputs(format);
  return (count + block - 1) / block * block;
}

void pack_blocks(const DensePart& part, std::size_t panel, PanelWeight& weight) {
  const std::byte* rows[kPanelOutputs] = {};
  for (std::size_t o = 0; o < kPanelOutputs; ++o) {
    const std::size_t output = panel * kPanelOutputs + o;
    if (output >= weight.out_size()) break;
    rows[o] = part.matrix.data.data() + part.source_row(output) * part.matrix.row_bytes();
  }
  pack_panel(rows, panel, weight);
}

void pack_floats(const DensePart& part, std::size_t panel, PanelWeight& weight) {
  const std::size_t in_size = weight.in_size();
  std::vector<float> values(kPanelOutputs * in_size);  // zeros behind a row that is shorter
  const float* rows[kPanelOutputs] = {};
  for (std::size_t o = 0; o < kPanelOutputs; ++o) {
    const std::size_t output = panel * kPanelOutputs + o;
    if (output >= weight.out_size()) break;
    part.matrix.read_row(part.source_row(output),
                         std::span(values).subspan(o * in_size, part.matrix.column_count));
    rows[o] = values.data() + o * in_size;
  }
  pack_panel(rows, panel, weight);
}

std::size_t items_of(const std::vector<PanelWeight>& parts, std::size_t step) {
  std::size_t count = 0;
  for (const auto& part : parts) count += (part.panel_count() + step - 1) / step;
  return count;
}

/// Panels of an item of a product with these parts: enough items that the last one to finish is not
/// far behind, and no small ones where there are many panels. A small product is cut so that the
/// member with most panels has as few as possible; of equal cuts the one of larger items is taken.
/// Cutting interleaved panels apart is counted as an eighth more: of 36 panels two members have 20
/// and 16, not 18 each (32 streams of SmolLM2-135M in bf16 on two cores of a Zen 5: 2 % faster).
std::size_t panels_per_item(const std::vector<PanelWeight>& parts, std::size_t team_size) {
  const std::size_t panel_count = items_of(parts, 1);
  if (team_size == 1) return panel_count;
  constexpr std::size_t kItemsPerMember = 6;
  const std::size_t wanted = panel_count / (kItemsPerMember * team_size);
  if (wanted >= 8) return std::min<std::size_t>(wanted / 4 * 4, 64);
  const bool is_interleaved = parts.front().is_interleaved();
  std::size_t best = 4;
  std::size_t least = 9 * panel_count;
  for (std::size_t step = is_interleaved ? 2 : 3; step <= 8; ++step) {
    const bool cuts = is_interleaved && step % PanelWeight::kInterleaved != 0;
    const std::size_t most = (items_of(parts, step) + team_size - 1) / team_size * step;
    const std::size_t cost = most * (cuts ? 9 : 8);
    if (cost > least) continue;
    best = step;
    least = cost;
  }
  return best;
}

}  // namespace

Result<WeightFormat> weight_format(const SourceMatrix& matrix, DecoderPrecision precision) {
  if (precision == DecoderPrecision::Fp32) return WeightFormat::Fp32;
  if (precision == DecoderPrecision::Bf16) return WeightFormat::Bf16;
  if (precision == DecoderPrecision::Int8) return WeightFormat::Int8;
  // One that is stored the other way round is of plain floats, which are packed one by one.
  if (const auto own = own_format(*matrix.type)) return *own;
  return Error{ErrorKind::Unsupported,
               fmt::format("precision own multiplies F32, BF16, Q4_0, Q4_1 and Q8_0 as they are, "
                           "and the file has a matrix of {}: use bf16 or fp32",
                           matrix.type->name)};
}

Status PanelMatrix::add(const DensePart& part, DecoderPrecision precision, ThreadTeam& team) {
  const auto format = MUSTER_TRY(weight_format(part.matrix, precision));
  MUSTER_CHECK(parts_.empty() || in_size_ == part.matrix.column_count);
  in_size_ = part.matrix.column_count;
  PanelWeight weight(format, part.matrix.row_count, packed_inputs(format, in_size_),
                     best_decoder_kernels().interleaves_panels);
  const bool is_as_stored = is_blocked(format) && own_format(*part.matrix.type) == format;
  team.share(weight.panel_count(), [&](std::size_t panel, std::size_t) {
    if (is_as_stored) {
      pack_blocks(part, panel, weight);
    } else {
      pack_floats(part, panel, weight);
    }
  });
  if (!part.bias.empty()) {
    float* bias = weight.make_bias();
    for (std::size_t i = 0; i < part.bias.size(); ++i) bias[i] = part.bias[part.source_row(i)];
  }
  out_size_ += weight.out_size();
  forms_ = forms_ | RowForms::of(format);
  parts_.push_back(std::move(weight));
  item_panels_ = panels_per_item(parts_, team.size());
  return Done{};
}

std::uint64_t PanelMatrix::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& part : parts_) sum += part.bytes();
  return sum;
}

void PanelMatrix::multiply(const DecoderKernels& kernels, ThreadTeam& team, const RowBuffer& x,
                           std::size_t row_count, const ProductOut& out,
                           CacheFetches* fetches) const {
  struct Item {
    const PanelWeight* weight;
    PanelProduct product;
    std::size_t panel_begin, panel_end;
    float* out;
  };
  const std::size_t step = item_panels_;
  std::vector<Item> items;
  items.reserve(items_of(parts_, step));
  float* to = out.out;
  for (const auto& part : parts_) {
    for (std::size_t begin = 0; begin < part.panel_count(); begin += step) {
      items.push_back({&part, kernels.product(part.format()), begin,
                       std::min(begin + step, part.panel_count()), to});
    }
    to += part.out_size();
  }
  const RowShares shares(row_count, team.size());
  const std::size_t blocks = (shares.longest() + kRowsPerItem - 1) / kRowsPerItem;  // of a share
  const std::size_t item_count = items.size() * blocks * shares.count();
  team.share(item_count, [&](std::size_t index, std::size_t member) {
    const Item& item = items[index % items.size()];
    const std::size_t block = index / items.size();
    const RowRange range = shares.range(block / blocks);
    const std::size_t row = range.begin + block % blocks * kRowsPerItem;
    const std::size_t end = std::min(row + kRowsPerItem, range.end);
    if (row >= end) return;
    auto rows = x.rows(row, end - row);
    if (fetches != nullptr) rows.runs = fetches->of(member);
    // A member takes its items in their order.
    if (index + 1 < item_count) {
      const Item& then = items[(index + 1) % items.size()];
      rows.next_panels = then.weight->panel(then.panel_begin);
    }
    item.product(*item.weight, item.panel_begin, item.panel_end, rows,
                 {item.out + row * out.stride, out.stride, out.adds});
  });
}

const std::byte* PanelMatrix::panel_of(std::size_t output) const {
  for (const auto& part : parts_) {
    if (output < part.out_size()) return part.panel(output / kPanelOutputs);
    output -= part.out_size();
  }
  return nullptr;
}

std::size_t PanelMatrix::multiply_outputs(const DecoderKernels& kernels, const ProductRows& x,
                                          std::size_t begin, std::size_t end,
                                          const ProductOut& out) const {
  for (const auto& part : parts_) {
    if (end <= part.out_size()) {
      kernels.product(part.format())(
          part, begin / kPanelOutputs, (end + kPanelOutputs - 1) / kPanelOutputs, x,
          {out.out, out.stride, out.adds, begin / kPanelOutputs * kPanelOutputs});
      return begin % kPanelOutputs;
    }
    MUSTER_CHECK(begin >= part.out_size());
    begin -= part.out_size();
    end -= part.out_size();
  }
  MUSTER_CHECK(begin == end);
  return 0;
}

}  // namespace muster::engine
