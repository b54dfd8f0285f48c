// gpu_metrics is a packed table whose layout changes with each version and is told by four bytes of
// header. A table of offsets for each version replaces the kernel's structs: fields are copied out
// byte by byte, so that neither alignment nor the compiler matters, and an unknown version or
// another size is refused rather than guessed. A field of all ones is absent. Source:
// kgd_pp_interface.h; more in the header.

#include "hw/amd/amd_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "spec/reading.h"

namespace muster {
namespace {

// One number or an array of `count`, at `offset`; width 0: the version has no such field.
struct Field {
  std::uint16_t offset = 0;
  std::uint8_t width = 0;  // bytes
  std::uint8_t count = 1;
};

constexpr Field u16(std::uint16_t offset, std::uint8_t count = 1) { return {offset, 2, count}; }
constexpr Field u32(std::uint16_t offset) { return {offset, 4, 1}; }
constexpr Field u64(std::uint16_t offset, std::uint8_t count = 1) { return {offset, 8, count}; }

struct Layout {
  std::uint8_t format = 0;
  std::uint8_t content = 0;
  std::uint16_t size = 0;
  Field activity = {};
  double activity_unit = 0.01;
  Field memory_activity = {};
  Field power_now = {};
  Field power_average = {};
  Field socket_power = {};
  double power_unit = 1.0;  // watts
  Field energy = {};
  Field clock_graphics = {};
  Field clock_memory = {};
  Field clock_video = {};
  Field throttle = {};
  Field steps = {};
  std::array<Field, 3> power_residencies = {};
  std::array<Field, 3> thermal_residencies = {};
  Field hot_signal = {};
  Field firmware_time = {};
  Field xgmi_read = {};
  Field xgmi_written = {};
  Field pcie_replays = {};
  Field partition_count = {};
  std::uint16_t partitions = 0;  // offset of the first
  std::uint16_t partition_size = 0;
};

constexpr Layout v1_old(std::uint8_t content, std::uint16_t size, Field throttle) {
  return {.format = 1,
          .content = content,
          .size = size,
          .activity = u16(16),
          .memory_activity = u16(18),
          .power_average = u16(22),
          .clock_graphics = u16(54),
          .clock_memory = u16(58),
          .clock_video = u16(60),
          .throttle = throttle};
}

constexpr Layout v1_new(std::uint8_t content, std::uint16_t size) {
  return {.format = 1,
          .content = content,
          .size = size,
          .activity = u16(12),
          .memory_activity = u16(14),
          .power_now = u16(10)};
}

constexpr Layout v1_4() {
  auto layout = v1_new(4, 288);
  layout.energy = u64(24);
  layout.clock_graphics = u16(240, 8);
  layout.clock_memory = u16(280);
  layout.clock_video = u16(264, 4);
  layout.firmware_time = u64(232);
  layout.xgmi_read = u64(104, 8);
  layout.xgmi_written = u64(168, 8);
  layout.pcie_replays = u64(88);
  return layout;
}

constexpr Layout v1_5() {
  auto layout = v1_new(5, 360);
  layout.energy = u64(88);
  layout.clock_graphics = u16(312, 8);
  layout.clock_memory = u16(352);
  layout.clock_video = u16(336, 4);
  layout.firmware_time = u64(304);
  layout.xgmi_read = u64(176, 8);
  layout.xgmi_written = u64(240, 8);
  layout.pcie_replays = u64(152);
  return layout;
}

constexpr Layout v1_6() {
  auto layout = v1_new(6, 1664);
  layout.energy = u64(16);
  layout.clock_graphics = u16(264, 8);
  layout.clock_memory = u16(304);
  layout.clock_video = u16(288, 4);
  layout.steps = u32(32);
  layout.hot_signal = u32(36);
  layout.power_residencies = {u32(40)};
  layout.thermal_residencies = {u32(44), u32(48), u32(52)};
  layout.firmware_time = u64(256);
  layout.xgmi_read = u64(128, 8);
  layout.xgmi_written = u64(192, 8);
  layout.pcie_replays = u64(104);
  layout.partition_count = u16(306);
  layout.partitions = 312;
  layout.partition_size = 168;
  return layout;
}

constexpr Layout v1_7(std::uint8_t content, std::uint16_t size, std::uint16_t partition_size) {
  auto layout = v1_new(content, size);
  layout.energy = u64(24);
  layout.clock_graphics = u16(296, 8);
  layout.clock_memory = u16(336);
  layout.clock_video = u16(320, 4);
  layout.steps = u32(40);
  layout.hot_signal = u32(44);
  layout.power_residencies = {u32(48)};
  layout.thermal_residencies = {u32(52), u32(56), u32(60)};
  layout.firmware_time = u64(288);
  layout.xgmi_read = u64(136, 8);
  layout.xgmi_written = u64(200, 8);
  layout.pcie_replays = u64(112);
  layout.partition_count = u16(338);
  layout.partitions = 344;
  layout.partition_size = partition_size;
  return layout;
}

constexpr Layout v2(std::uint8_t content, std::uint16_t size, Field throttle) {
  return {.format = 2, .content = content, .size = size, .throttle = throttle};
}

constexpr Layout v2_4() {
  auto layout = v2(4, 168, u64(120));
  layout.activity = u16(28);
  layout.activity_unit = 0.0001;
  layout.socket_power = u16(40);
  layout.power_average = u16(46);
  layout.power_unit = 1e-3;
  layout.clock_graphics = u16(76);
  layout.clock_memory = u16(80);
  layout.clock_video = u16(84);
  return layout;
}

constexpr Layout v3_0() {
  return {.format = 3,
          .content = 0,
          .size = 264,
          .activity = u16(42),
          .power_average = u32(124),
          .socket_power = u32(112),
          .power_unit = 1e-3,
          .clock_graphics = u16(174),
          .clock_memory = u16(186),
          .clock_video = u16(184),
          .power_residencies = {u32(232), u32(236), u32(240)},
          .thermal_residencies = {u32(244), u32(248), u32(252)},
          .hot_signal = u32(228)};
}

constexpr std::array kLayouts{v1_old(1, 96, {}),
                              v1_old(2, 104, {}),
                              v1_old(3, 120, u64(112)),
                              v1_4(),
                              v1_5(),
                              v1_6(),
                              v1_7(7, 2208, 232),
                              v1_7(8, 3360, 376),
                              v2(1, 120, {}),
                              v2(2, 128, u64(120)),
                              v2(3, 152, u64(120)),
                              v2_4(),
                              v3_0()};

constexpr std::size_t kHeader = 4;
constexpr std::size_t kPartitionsMax = 8;  // NUM_XCP
constexpr std::uint8_t kDiesMax = 8;       // MAX_XCC
constexpr double kMegahertz = 1e6;
constexpr double kEnergyUnit = 1.0 / 65536.0;  // joules: "15.259uJ (2^-16) units"
constexpr double kFirmwareTick = 1e-8;         // "10ns resolution"
constexpr double kXgmiUnit = 1024.0;           // "KiloBytes", in which the kernel means KiB

// Little endian, as the kernels of the machines that have these GPUs are.
class Table {
 public:
  explicit Table(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t raw(std::size_t offset, std::size_t width) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      value |= std::to_integer<std::uint64_t>(bytes_[offset + i]) << (8 * i);
    }
    return value;
  }

  std::optional<std::uint64_t> number(Field field, std::size_t index = 0,
                                      std::size_t base = 0) const {
    const auto offset = base + field.offset + index * field.width;
    if (field.width == 0 || offset + field.width > bytes_.size()) return std::nullopt;
    const auto value = raw(offset, field.width);
    const auto all_ones = std::numeric_limits<std::uint64_t>::max() >> (64 - 8 * field.width);
    return value == all_ones ? std::nullopt : std::optional(value);
  }

  std::optional<double> scaled(Field field, double unit) const {
    const auto value = number(field);
    return value ? std::optional(static_cast<double>(*value) * unit) : std::nullopt;
  }

  std::optional<double> share(Field field, double unit) const {
    const auto value = scaled(field, unit);
    return value && *value <= 1.0 ? value : std::nullopt;
  }

  std::optional<double> sum(Field field, double unit) const {
    double sum = 0;
    return fold(field, sum) > 0 ? std::optional(sum * unit) : std::nullopt;
  }

  std::optional<double> mean(Field field, double unit, std::size_t base = 0) const {
    double sum = 0;
    const auto count = fold(field, sum, base);
    return count > 0 ? std::optional(sum * unit / static_cast<double>(count)) : std::nullopt;
  }

 private:
  std::size_t fold(Field field, double& sum, std::size_t base = 0) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < field.count; ++i) {
      if (const auto value = number(field, i, base)) {
        sum += static_cast<double>(*value);
        ++count;
      }
    }
    return count;
  }

  std::span<const std::byte> bytes_;
};

std::optional<AmdResidencies> residencies_of(const Layout& layout, const Table& table) {
  const auto hot = table.number(layout.hot_signal);
  if (!hot) return std::nullopt;
  AmdResidencies found;
  found.hot_signal = *hot;
  for (const auto field : layout.power_residencies) found.power += table.number(field).value_or(0);
  for (const auto field : layout.thermal_residencies) {
    found.thermal += table.number(field).value_or(0);
  }
  found.steps = table.number(layout.steps);
  return found;
}

std::vector<std::optional<double>> partitions_of(const Layout& layout, const Table& table) {
  const auto count =
      std::min<std::size_t>(table.number(layout.partition_count).value_or(0), kPartitionsMax);
  std::vector<std::optional<double>> activity;
  for (std::size_t i = 0; i < count; ++i) {
    // gfx_busy_inst is the first field of a partition: a percentage for each of its dies.
    const auto base = layout.partitions + i * layout.partition_size;
    const auto mean = table.mean({0, 4, kDiesMax}, 0.01, base);
    activity.push_back(mean && *mean <= 1.0 ? mean : std::nullopt);
  }
  return activity;
}

}  // namespace

Result<AmdMetrics> parse_gpu_metrics(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeader) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("gpu_metrics ends within its header: {} bytes", bytes.size())};
  }
  const Table header(bytes);
  const auto size = header.raw(0, 2);
  const auto format = header.raw(2, 1);
  const auto content = header.raw(3, 1);
  const auto* layout = std::find_if(kLayouts.begin(), kLayouts.end(), [&](const Layout& one) {
    return one.format == format && one.content == content;
  });
  if (layout == kLayouts.end()) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("gpu_metrics of an unknown version: v{}.{}", format, content)};
  }
  if (size != layout->size || bytes.size() < size) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("gpu_metrics v{}.{} of {} bytes has another size: it says {}, {} came",
                             format, content, layout->size, size, bytes.size())};
  }
  const Table table(bytes.first(layout->size));
  AmdMetrics metrics;
  metrics.is_apu = format != 1;
  metrics.activity = table.share(layout->activity, layout->activity_unit);
  metrics.memory_activity = table.share(layout->memory_activity, 0.01);
  metrics.power_now = table.scaled(layout->power_now, layout->power_unit);
  metrics.power_average = table.scaled(layout->power_average, layout->power_unit);
  metrics.socket_power = table.scaled(layout->socket_power, layout->power_unit);
  metrics.energy_joules = table.scaled(layout->energy, kEnergyUnit);
  metrics.clock_graphics = table.mean(layout->clock_graphics, kMegahertz);
  metrics.clock_memory = table.scaled(layout->clock_memory, kMegahertz);
  metrics.clock_video = table.mean(layout->clock_video, kMegahertz);
  metrics.throttle = table.number(layout->throttle);
  metrics.residencies = residencies_of(*layout, table);
  metrics.firmware_seconds = table.scaled(layout->firmware_time, kFirmwareTick);
  metrics.xgmi_read_bytes = table.sum(layout->xgmi_read, kXgmiUnit);
  metrics.xgmi_written_bytes = table.sum(layout->xgmi_written, kXgmiUnit);
  metrics.pcie_replays = table.scaled(layout->pcie_replays, 1.0);
  metrics.partition_activity = partitions_of(*layout, table);
  return metrics;
}

std::uint32_t clock_events_of(std::uint64_t throttle) {
  constexpr std::uint64_t kPower = 0x0000'0000'00ff'00ff;    // PPT, SPL, FPPT, SPPT; TDC, EDC, APCC
  constexpr std::uint64_t kPowerModel = 1ULL << 56;          // PPM
  constexpr std::uint64_t kThermal = 0x0000'0fff'0000'0000;  // TEMP_GPU to TEMP_LIQUID1
  constexpr std::uint64_t kHot = 0x0000'f000'0000'0000;      // VRHOT0 and 1, PROCHOT_CPU and _GFX
  std::uint32_t events = 0;
  const auto add = [&](ClockEvent event) { events |= static_cast<std::uint32_t>(event); };
  if ((throttle & (kPower | kPowerModel)) != 0) add(ClockEvent::SwPowerCap);
  if ((throttle & kThermal) != 0) add(ClockEvent::SwThermal);
  if ((throttle & kHot) != 0) add(ClockEvent::HwThermal);
  return events;
}

}  // namespace muster
