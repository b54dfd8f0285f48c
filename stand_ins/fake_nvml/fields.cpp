#include "fake_nvml/fields.h"

#include <array>
#include <cmath>

#include "fake_nvml/nvlink.h"

namespace muster::fake_nvml {
namespace {

// The fields of a range, and the first driver series whose nvml.h has them.
struct FieldSeries {
  std::uint32_t first;
  std::uint32_t last;
  std::uint32_t since;
};
// Source: nvml.h of CUDA 11.0 (450) to 13.1 (590), NVML_FI_DEV_*.
constexpr std::array kFieldSeries{
    FieldSeries{1, 145, 450},   FieldSeries{146, 146, 455}, FieldSeries{147, 147, 460},
    FieldSeries{148, 160, 470}, FieldSeries{161, 166, 520}, FieldSeries{167, 169, 525},
    FieldSeries{170, 196, 535}, FieldSeries{197, 198, 555}, FieldSeries{199, 199, 550},
    FieldSeries{200, 200, 555}, FieldSeries{201, 229, 560}, FieldSeries{230, 230, 570},
    FieldSeries{231, 234, 575}, FieldSeries{269, 271, 590}};

bool has_field(std::uint32_t generation, std::uint32_t field) {
  for (const auto& row : kFieldSeries) {
    if (field >= row.first && field <= row.last) return generation >= row.since;
  }
  return false;
}

FieldAnswer milliwatts(double watts) {
  return unsigned_answer(static_cast<std::uint64_t>(std::llround(watts * 1e3)));
}

std::optional<FieldAnswer> power(const Visit& visit, std::uint32_t field, std::uint32_t scope) {
  const auto& sensor = visit.gpu.sensor;
  const auto& model = *visit.spec().model;
  if (scope != 0) {
    // No module and no memory of their own, unless the scenario says so.
    const auto id = scope == 1 ? ValueId::ModulePower : ValueId::MemoryPower;
    const auto& scripted = visit.spec().values[static_cast<std::size_t>(id)];
    if (scope > 2 || field > 186 || !scripted.curve) return std::nullopt;
    return milliwatts(scripted.curve->value(seconds(visit.now_ns)));
  }
  switch (field) {
    case 185: {
      // "supported on Ampere (except GA100) or newer architectures"
      const bool is_there =
          model.architecture >= Architecture::Ampere && model.compute_capability != 80;
      if (!is_there) return std::nullopt;
      return milliwatts(sensor.average_watts(visit.now_ns));
    }
    case 186:
      return milliwatts(sensor.instant_watts(visit.now_ns));
    case 187:
      return milliwatts(model.power_limit_min_watts);
    case 188:
    case 189:
      return milliwatts(model.power_limit_watts);
    default: {  // 190 enforced, 192 requested
      const auto limit = sensor.value(ValueId::PowerLimit, visit.now_ns, model.power_limit_watts);
      if (!limit) return std::nullopt;
      return milliwatts(*limit);
    }
  }
}

// Nanoseconds that a reason for lower clocks has held. The fields without a bit are there and 0.
std::optional<FieldAnswer> clock_event_time(const Visit& visit, std::uint32_t field) {
  std::uint32_t bit = 0;
  if (field == 74) bit = 0x4;
  if (field == 75 || field == 269) bit = 0x20;
  if (field == 76) bit = 0x10;
  if (field == 80) bit = 0x2;
  if (field == 270) bit = 0x40;
  if (field == 271) bit = 0x80;
  return long_answer(bit == 0 ? 0 : visit.gpu.sensor.clock_event_ns(bit, visit.now_ns));
}

// How far from 87 C shutdown, slowdown and the maximum are. Source: an H100's `nvidia-smi -q`.
std::optional<FieldAnswer> temperature_limit(const Visit& visit, std::uint32_t field) {
  if (visit.spec().model->architecture < Architecture::Ada) return std::nullopt;
  if (field == 193) return int_answer(-8);
  if (field == 194) return int_answer(-2);
  return int_answer(0);
}

std::optional<FieldAnswer> ecc(const Visit& visit, std::uint32_t field) {
  if (!visit.spec().is_ecc_on) return std::nullopt;
  if (field <= 2) return unsigned_answer(*visit.spec().is_ecc_on ? 1 : 0);
  if (!*visit.spec().is_ecc_on) return std::nullopt;
  static constexpr std::array kTotals{
      ValueId::EccCorrectedVolatile, ValueId::EccUncorrectedVolatile,
      ValueId::EccCorrectedAggregate, ValueId::EccUncorrectedAggregate};
  const auto count = visit.count(kTotals[field - 3]);
  if (!count) return std::nullopt;
  return long_answer(*count);
}

std::optional<FieldAnswer> retired(const Visit& visit, std::uint32_t field) {
  if (visit.spec().model->has_row_remapper || !visit.spec().is_ecc_on) return std::nullopt;
  static constexpr std::array kIds{ValueId::RetiredSingleBit, ValueId::RetiredDoubleBit,
                                   ValueId::RetiredPending};
  return scripted_answer(visit, kIds[field - 29]);
}

std::optional<FieldAnswer> remapped(const Visit& visit, std::uint32_t field) {
  if (!visit.spec().model->has_row_remapper || !visit.spec().is_ecc_on) return std::nullopt;
  static constexpr std::array kIds{ValueId::RemappedCorrectable, ValueId::RemappedUncorrectable,
                                   ValueId::RemapPending, ValueId::RemapFailed};
  return scripted_answer(visit, kIds[field - 142]);
}

std::optional<FieldAnswer> pcie_bytes(const Visit& visit, std::uint32_t field) {
  const auto& traffic = visit.spec().traffic;
  const double rate = field == 197 ? traffic.pcie_sent : traffic.pcie_received;
  const double bytes = rate * visit.gpu.sensor.load_seconds(visit.now_ns);
  return long_answer(static_cast<std::uint64_t>(bytes));
}

std::optional<FieldAnswer> energy(const Visit& visit) {
  const auto counter = visit.gpu.sensor.energy_mj(visit.now_ns);
  if (!counter) return std::nullopt;
  return long_answer(*counter);
}

std::optional<FieldAnswer> memory_temperature(const Visit& visit) {
  const auto celsius = visit.gpu.sensor.memory_celsius(visit.now_ns);
  if (!celsius) return std::nullopt;
  return unsigned_answer(static_cast<std::uint64_t>(*celsius));
}

bool is_between(std::uint32_t field, std::uint32_t first, std::uint32_t last) {
  return field >= first && field <= last;
}

void delay_field(const Visit& visit, std::uint32_t field) {
  const auto& delays = visit.spec().field_delays_us;
  if (const auto found = delays.find(field); found != delays.end()) spend_time(found->second);
}

}  // namespace

FieldAnswer unsigned_answer(std::uint64_t value) {
  FieldAnswer answer;
  answer.type = kUnsignedInt;
  answer.value.as_unsigned_long_long = 0;
  answer.value.as_unsigned = static_cast<std::uint32_t>(value);
  return answer;
}

FieldAnswer long_answer(std::uint64_t value) {
  FieldAnswer answer;
  answer.type = kUnsignedLongLong;
  answer.value.as_unsigned_long_long = value;
  return answer;
}

FieldAnswer int_answer(std::int32_t value) {
  FieldAnswer answer;
  answer.type = kSignedInt;
  answer.value.as_unsigned_long_long = 0;
  answer.value.as_int = value;
  return answer;
}

std::optional<FieldAnswer> scripted_answer(const Visit& visit, ValueId id) {
  const auto count = visit.count(id);
  if (!count) return std::nullopt;
  return unsigned_answer(*count);
}

std::optional<FieldAnswer> field_value(const Visit& visit, std::uint32_t field,
                                       std::uint32_t scope) {
  if (!has_field(visit.driver.scenario().generation, field)) return std::nullopt;
  if (is_between(field, 1, 6)) return ecc(visit, field);
  if (is_between(field, 29, 31)) return retired(visit, field);
  if (is_between(field, 74, 81) || is_between(field, 269, 271)) {
    return clock_event_time(visit, field);
  }
  if (field == 82) return memory_temperature(visit);
  if (field == 83 || field == 191) return energy(visit);
  if (field == 94) return scripted_answer(visit, ValueId::PcieReplays);
  if (is_between(field, 142, 145)) return remapped(visit, field);
  if (field == 170) return unsigned_answer(visit.spec().shares_host_memory ? 1 : 0);
  if (is_between(field, 185, 190) || field == 192) return power(visit, field, scope);
  if (is_between(field, 193, 196)) return temperature_limit(visit, field);
  if (field == 197 || field == 198) return pcie_bytes(visit, field);
  if (field == 230) return scripted_answer(visit, ValueId::RecoveryAction);
  return link_field_value(visit, field, scope);
}

FAKENVML_EXPORT int nvmlDeviceGetFieldValues(DeviceHandle device, int count, FieldValue* values) {
  return answer(Function::nvmlDeviceGetFieldValues, device, [&](const Visit& visit) -> int {
    if (values == nullptr || count <= 0) return kInvalidArgument;
    const auto wall_us = visit.driver.clock().wall_us();
    for (int i = 0; i < count; ++i) {
      auto& value = values[i];
      value.timestamp_us = wall_us;
      value.latency_us = 0;
      delay_field(visit, value.field);
      value.code = visit.driver.field_fault(value.field, visit.handle.gpu, visit.now_ns);
      if (value.code != kSuccess) continue;
      const auto found =
          visit.slice() == nullptr ? field_value(visit, value.field, value.scope) : std::nullopt;
      value.code = found ? kSuccess : kNotSupported;
      if (!found) continue;
      value.value_type = found->type;
      value.value = found->value;
    }
    return kSuccess;
  });
}

}  // namespace muster::fake_nvml
