// What collector and sampler say to each other. Structs here are deep and mostly optional, so they
// are built from a few combinators (optional, list, whole message), each used in both directions. A
// list grows with the elements that have arrived: its count is a claim until then, and no memory is
// taken for a claim. Numbers must be finite, because one NaN would spoil every sum that it enters.
// Source: docs/formats/frames.md.

#include "wire/telemetry_messages.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>
#include <utility>

#include "wire/bytes.h"

namespace muster {
namespace {

void write_bool(ByteWriter& writer, bool value) { writer.number(static_cast<std::uint8_t>(value)); }

// Stricter than a flag needs: a 2 here means that the reader has lost its place.
Result<bool> read_bool(ByteReader& reader) {
  const auto value = MUSTER_TRY(reader.number<std::uint8_t>());
  if (value > 1) return ByteReader::unknown_value("yes or no", value);
  return value == 1;
}

Result<double> read_finite(ByteReader& reader) {
  const auto value = MUSTER_TRY(reader.number<double>());
  if (!std::isfinite(value)) {
    return Error{ErrorKind::Corrupt, "message has a number that is not finite"};
  }
  return value;
}

// Ticks of the steady clock, which all processes of a machine share; no wall clock is sent.
void write_time(ByteWriter& writer, TimePoint at) {
  writer.number(static_cast<std::int64_t>(at.time_since_epoch().count()));
}

Result<TimePoint> read_time(ByteReader& reader) {
  return TimePoint(Duration(MUSTER_TRY(reader.number<std::int64_t>())));
}

void write_text(ByteWriter& writer, const std::string& value) { writer.text(value); }
Result<std::string> read_text(ByteReader& reader) { return reader.text(); }

template <typename Number>
void write_number(ByteWriter& writer, Number value) {
  writer.number(value);
}
template <typename Number>
Result<Number> read_number(ByteReader& reader) {
  return reader.number<Number>();
}

// u8 whether it is there, then the value.
template <typename T, typename WriteValue>
void write_optional(ByteWriter& writer, const std::optional<T>& value, WriteValue write) {
  write_bool(writer, value.has_value());
  if (value) write(writer, *value);
}

// What a function that reads from a payload gives.
template <typename Read>
using ValueOf = std::decay_t<decltype(*std::declval<Read>()(std::declval<ByteReader&>()))>;

template <typename ReadValue>
Result<std::optional<ValueOf<ReadValue>>> read_optional(ByteReader& reader, ReadValue read) {
  std::optional<ValueOf<ReadValue>> value;
  if (MUSTER_TRY(read_bool(reader))) value = MUSTER_TRY(read(reader));
  return value;
}

// u32 count, then the elements.
template <typename Elements, typename WriteElement>
void write_list(ByteWriter& writer, const Elements& elements, WriteElement write) {
  writer.number(static_cast<std::uint32_t>(elements.size()));
  for (const auto& element : elements) write(writer, element);
}

// Elements are appended one by one. Memory is not reserved by the count, which may be any number.
template <typename ReadElement>
Result<std::vector<ValueOf<ReadElement>>> read_list(ByteReader& reader, ReadElement read) {
  std::vector<ValueOf<ReadElement>> elements;
  const auto count = MUSTER_TRY(reader.number<std::uint32_t>());
  for (std::uint32_t i = 0; i < count; ++i) elements.push_back(MUSTER_TRY(read(reader)));
  return elements;
}

void write_device(ByteWriter& writer, const Device& device) {
  writer.number(device.kind);
  writer.number(device.index);
  writer.text(device.model);
  write_optional(writer, device.uuid, write_text);
  write_optional(writer, device.pci_address, write_text);
  write_optional(writer, device.memory_total_bytes, write_number<std::uint64_t>);
  write_optional(writer, device.memory_free_bytes, write_number<std::uint64_t>);
  writer.numbers<std::uint32_t>(device.cpus);
  write_optional(writer, device.compute_capability, write_number<std::uint32_t>);
}

// Used within an identity only: no message carries a device alone.
Result<Device> read_device(ByteReader& reader) {
  Device device;
  device.kind = MUSTER_TRY(reader.enumerator(kDeviceKindLast, "device kind"));
  device.index = MUSTER_TRY(reader.number<std::uint32_t>());
  device.model = MUSTER_TRY(reader.text());
  device.uuid = MUSTER_TRY(read_optional(reader, read_text));
  device.pci_address = MUSTER_TRY(read_optional(reader, read_text));
  device.memory_total_bytes = MUSTER_TRY(read_optional(reader, read_number<std::uint64_t>));
  device.memory_free_bytes = MUSTER_TRY(read_optional(reader, read_number<std::uint64_t>));
  device.cpus = MUSTER_TRY(reader.numbers<std::uint32_t>());
  device.compute_capability = MUSTER_TRY(read_optional(reader, read_number<std::uint32_t>));
  return device;
}

// Fields of one type go by a list of pointers. Writer and reader must list the same members in the
// same order; nothing but the tests compares the two.
void write_identity(ByteWriter& writer, const DeviceIdentity& identity) {
  write_device(writer, identity.device);
  for (const auto* text : {&identity.driver_version, &identity.cuda_version, &identity.vbios,
                           &identity.serial, &identity.parent, &identity.mig_profile}) {
    write_optional(writer, *text, write_text);
  }
  for (const auto* number : {&identity.numa_node, &identity.multiprocessor_count,
                             &identity.compute_mode, &identity.driver_index, &identity.cuda_ordinal,
                             &identity.gpu_instance, &identity.compute_instance}) {
    write_optional(writer, *number, write_number<std::uint32_t>);
  }
  for (const auto* answer : {&identity.is_ecc_on, &identity.is_mig_on, &identity.is_persistent}) {
    write_optional(writer, *answer, write_bool);
  }
  write_bool(writer, identity.has_mps_server);
  write_bool(writer, identity.has_unified_memory);
  write_bool(writer, identity.is_barred);
}

Result<DeviceIdentity> read_identity(ByteReader& reader) {
  DeviceIdentity identity;
  identity.device = MUSTER_TRY(read_device(reader));
  for (auto* text : {&identity.driver_version, &identity.cuda_version, &identity.vbios,
                     &identity.serial, &identity.parent, &identity.mig_profile}) {
    *text = MUSTER_TRY(read_optional(reader, read_text));
  }
  for (auto* number : {&identity.numa_node, &identity.multiprocessor_count, &identity.compute_mode,
                       &identity.driver_index, &identity.cuda_ordinal, &identity.gpu_instance,
                       &identity.compute_instance}) {
    *number = MUSTER_TRY(read_optional(reader, read_number<std::uint32_t>));
  }
  for (auto* answer : {&identity.is_ecc_on, &identity.is_mig_on, &identity.is_persistent}) {
    *answer = MUSTER_TRY(read_optional(reader, read_bool));
  }
  identity.has_mps_server = MUSTER_TRY(read_bool(reader));
  identity.has_unified_memory = MUSTER_TRY(read_bool(reader));
  identity.is_barred = MUSTER_TRY(read_bool(reader));
  return identity;
}

// Only what is there, as number and value, ascending: most devices have a small part of all.
void write_readings(ByteWriter& writer, const Readings& readings) {
  writer.number(static_cast<std::uint8_t>(readings.count()));
  for (std::size_t i = 0; i < kReadingCount; ++i) {
    const auto reading = static_cast<Reading>(i);
    if (!readings.has(reading)) continue;
    writer.number(reading);
    writer.number(*readings.get(reading));
  }
}

constexpr auto kLastReading = static_cast<Reading>(kReadingCount - 1);

// Ascending order is demanded, which refuses a reading that comes twice at no cost.
Result<Readings> read_readings(ByteReader& reader) {
  Readings readings;
  const auto count = MUSTER_TRY(reader.number<std::uint8_t>());
  std::optional<Reading> previous;
  for (std::uint8_t i = 0; i < count; ++i) {
    const auto reading = MUSTER_TRY(reader.enumerator(kLastReading, "reading"));
    if (previous && reading <= *previous) {
      return Error{ErrorKind::Corrupt,
                   fmt::format("message has a reading twice or out of order: {}",
                               reading_info(reading).name)};
    }
    previous = reading;
    readings.set(reading, MUSTER_TRY(read_finite(reader)));
  }
  return readings;
}

void write_reading_error(ByteWriter& writer, const ReadingError& error) {
  writer.number(error.reading);
  writer.number(error.code);
}

Result<ReadingError> read_reading_error(ByteReader& reader) {
  ReadingError error{};
  error.reading = MUSTER_TRY(reader.enumerator(kLastReading, "reading"));
  error.code = MUSTER_TRY(reader.number<std::int32_t>());
  return error;
}

// A process without a number is of another namespace and sent as 0.
void write_process(ByteWriter& writer, const GpuProcess& process) {
  writer.number(process.pid);
  writer.text(process.command);
  write_optional(writer, process.memory_bytes, write_number<std::uint64_t>);
  writer.number(process.kind);
}

Result<GpuProcess> read_process(ByteReader& reader) {
  GpuProcess process;
  process.pid = MUSTER_TRY(reader.number<std::uint32_t>());
  process.command = MUSTER_TRY(reader.text());
  process.memory_bytes = MUSTER_TRY(read_optional(reader, read_number<std::uint64_t>));
  process.kind = MUSTER_TRY(reader.enumerator(GpuProcessKind::Mps, "kind of process"));
  return process;
}

void write_processes(ByteWriter& writer, const std::vector<GpuProcess>& processes) {
  write_list(writer, processes, write_process);
}
Result<std::vector<GpuProcess>> read_processes(ByteReader& reader) {
  return read_list(reader, read_process);
}

void write_sample(ByteWriter& writer, const DeviceSample& sample) {
  writer.number(sample.device);
  write_time(writer, sample.at);
  writer.number(static_cast<std::uint8_t>(sample.tiers.to_ulong()));
  write_readings(writer, sample.readings);
  write_list(writer, sample.errors, write_reading_error);
  writer.numbers<float>(sample.core_loads);
  write_optional(writer, sample.processes, write_processes);
  writer.number(sample.call_count);
  writer.number(sample.call_seconds);
  write_optional(writer, sample.lost_reason, write_text);
}

// The device's index is checked by the collector, who knows how many there are.
Result<DeviceSample> read_sample(ByteReader& reader) {
  DeviceSample sample;
  sample.device = MUSTER_TRY(reader.number<std::uint32_t>());
  sample.at = MUSTER_TRY(read_time(reader));
  const auto tiers = MUSTER_TRY(reader.number<std::uint8_t>());
  if (tiers >= 1U << kTierCount) return ByteReader::unknown_value("tier", tiers);
  sample.tiers = TierSet(tiers);
  sample.readings = MUSTER_TRY(read_readings(reader));
  sample.errors = MUSTER_TRY(read_list(reader, read_reading_error));
  sample.core_loads = MUSTER_TRY(reader.numbers<float>());
  sample.processes = MUSTER_TRY(read_optional(reader, read_processes));
  sample.call_count = MUSTER_TRY(reader.number<std::uint32_t>());
  sample.call_seconds = MUSTER_TRY(read_finite(reader));
  sample.lost_reason = MUSTER_TRY(read_optional(reader, read_text));
  return sample;
}

void write_event(ByteWriter& writer, const DeviceEvent& event) {
  writer.number(event.device);
  writer.number(event.kind);
  writer.number(event.code);
  write_time(writer, event.at);
}

// The code is passed on unread: its meaning depends on the kind of event.
Result<DeviceEvent> read_event(ByteReader& reader) {
  DeviceEvent event;
  event.device = MUSTER_TRY(reader.number<std::uint32_t>());
  event.kind = MUSTER_TRY(reader.enumerator(DeviceEventKind::RecoveryAction, "event"));
  event.code = MUSTER_TRY(reader.number<std::uint64_t>());
  event.at = MUSTER_TRY(read_time(reader));
  return event;
}

void write_edge(ByteWriter& writer, const EdgeFound& edge) {
  writer.number(edge.device);
  write_optional(writer, edge.at, write_time);
  writer.number(edge.joules);
  writer.number<std::int64_t>(edge.within.count());
  writer.text(edge.missing_reason);
}

// Either a time or a reason is meant; which of them is there is told by the optional alone.
Result<EdgeFound> read_edge(ByteReader& reader) {
  EdgeFound edge;
  edge.device = MUSTER_TRY(reader.number<std::uint32_t>());
  edge.at = MUSTER_TRY(read_optional(reader, read_time));
  edge.joules = MUSTER_TRY(read_finite(reader));
  edge.within = Duration(MUSTER_TRY(reader.number<std::int64_t>()));
  edge.missing_reason = MUSTER_TRY(reader.text());
  return edge;
}

void write_call_cost(ByteWriter& writer, const CallCost& cost) {
  writer.text(cost.function);
  writer.number(cost.calls);
  writer.number(cost.seconds);
  write_list(writer, cost.errors, [](ByteWriter& inner, const auto& error) {
    inner.number(error.first);
    inner.number(error.second);
  });
}

// Codes are keys of a map: one that comes twice would lose a count, and is refused.
Result<CallCost> read_call_cost(ByteReader& reader) {
  CallCost cost;
  cost.function = MUSTER_TRY(reader.text());
  cost.calls = MUSTER_TRY(reader.number<std::uint64_t>());
  cost.seconds = MUSTER_TRY(read_finite(reader));
  const auto count = MUSTER_TRY(reader.number<std::uint32_t>());
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto code = MUSTER_TRY(reader.number<std::int32_t>());
    const auto times = MUSTER_TRY(reader.number<std::uint64_t>());
    if (!cost.errors.emplace(code, times).second) {
      return Error{ErrorKind::Corrupt, fmt::format("message has an error code twice: {}", code)};
    }
  }
  return cost;
}

// A message that is all of a payload.
template <typename ReadMessage>
Result<ValueOf<ReadMessage>> read_whole(std::span<const std::byte> payload, ReadMessage read) {
  ByteReader reader(payload);
  auto message = MUSTER_TRY(read(reader));
  MUSTER_TRY(reader.end());
  return message;
}

// A period of zero would make the sampler spin.
Result<Watch> read_watch(ByteReader& reader) {
  Watch message;
  message.nvml_libraries = MUSTER_TRY(read_list(reader, read_text));
  message.root = MUSTER_TRY(reader.text());
  message.simulated = MUSTER_TRY(read_optional(reader, read_text));
  for (auto& period : message.periods) {
    period = Duration(MUSTER_TRY(reader.number<std::int64_t>()));
    if (period <= Duration::zero()) {
      return Error{ErrorKind::Corrupt, "message has a period that is not above zero"};
    }
  }
  message.left_out = MUSTER_TRY(read_list(reader, read_text));
  return message;
}

void write_label(ByteWriter& writer, const LinkLabel& label) {
  writer.number(label.kind);
  writer.number(label.width);
}

// Rates are not sent: the receiver has the same catalogue.
Result<LinkLabel> read_label(ByteReader& reader) {
  LinkLabel label;
  label.kind = MUSTER_TRY(reader.enumerator(LinkKind::Sys, "kind of link"));
  label.width = MUSTER_TRY(reader.number<std::uint32_t>());
  return label;
}

// Links may be fewer than the devices, as CPUs and slices have none, but never more. The product is
// compared in 64 bits.
Result<WatchedMachine> read_machine(ByteReader& reader) {
  WatchedMachine message;
  message.name = MUSTER_TRY(reader.text());
  message.devices = MUSTER_TRY(read_list(reader, read_identity));
  message.links.device_count = MUSTER_TRY(reader.number<std::uint32_t>());
  message.links.labels = MUSTER_TRY(read_list(reader, read_label));
  const auto count = std::uint64_t{message.links.device_count};
  if (count > message.devices.size() || message.links.labels.size() != count * count) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("links do not fit the devices: {} of {}, {} labels", count,
                             message.devices.size(), message.links.labels.size())};
  }
  message.gpu_absent_reason = MUSTER_TRY(read_optional(reader, read_text));
  return message;
}

// The tiers are known to both sides, so their number is not sent.
Result<SamplerCosts> read_costs(ByteReader& reader) {
  SamplerCosts message;
  for (auto& tier : message.ticks) {
    for (auto& count : tier.counts) count = MUSTER_TRY(reader.number<std::uint64_t>());
    tier.seconds = MUSTER_TRY(read_finite(reader));
    tier.missed = MUSTER_TRY(reader.number<std::uint64_t>());
  }
  message.calls = MUSTER_TRY(read_list(reader, read_call_cost));
  message.cpu_seconds = MUSTER_TRY(read_finite(reader));
  message.rss_bytes = MUSTER_TRY(reader.number<std::uint64_t>());
  return message;
}

}  // namespace

std::vector<std::byte> encode(const Watch& message) {
  ByteWriter writer;
  write_list(writer, message.nvml_libraries, write_text);
  writer.text(message.root);
  write_optional(writer, message.simulated, write_text);
  for (const auto period : message.periods) writer.number<std::int64_t>(period.count());
  write_list(writer, message.left_out, write_text);
  return writer.take();
}

Result<Watch> decode_watch(std::span<const std::byte> payload) {
  return read_whole(payload, read_watch);
}

std::vector<std::byte> encode(const FindEdges& message) {
  ByteWriter writer;
  writer.number<std::int64_t>(message.limit.count());
  return writer.take();
}

Result<FindEdges> decode_find_edges(std::span<const std::byte> payload) {
  return read_whole(payload, [](ByteReader& reader) -> Result<FindEdges> {
    return FindEdges{Duration(MUSTER_TRY(reader.number<std::int64_t>()))};
  });
}

std::vector<std::byte> encode(const Viewer& message) {
  ByteWriter writer;
  write_bool(writer, message.is_there);
  return writer.take();
}

Result<Viewer> decode_viewer(std::span<const std::byte> payload) {
  return read_whole(payload, [](ByteReader& reader) -> Result<Viewer> {
    return Viewer{MUSTER_TRY(read_bool(reader))};
  });
}

std::vector<std::byte> encode(const WatchedMachine& message) {
  ByteWriter writer;
  writer.text(message.name);
  write_list(writer, message.devices, write_identity);
  writer.number(message.links.device_count);
  write_list(writer, message.links.labels, write_label);
  write_optional(writer, message.gpu_absent_reason, write_text);
  return writer.take();
}

Result<WatchedMachine> decode_machine(std::span<const std::byte> payload) {
  return read_whole(payload, read_machine);
}

// A record is made at every tick, so the caller's buffer is used again.
std::vector<std::byte> encode(std::span<const DeviceSample> samples,
                              std::vector<std::byte> buffer) {
  ByteWriter writer(std::move(buffer));
  write_list(writer, samples, write_sample);
  return writer.take();
}

Result<std::vector<DeviceSample>> decode_samples(std::span<const std::byte> payload) {
  return read_whole(payload, [](ByteReader& reader) { return read_list(reader, read_sample); });
}

std::vector<std::byte> encode(std::span<const DeviceEvent> events) {
  ByteWriter writer;
  write_list(writer, events, write_event);
  return writer.take();
}

Result<std::vector<DeviceEvent>> decode_events(std::span<const std::byte> payload) {
  return read_whole(payload, [](ByteReader& reader) { return read_list(reader, read_event); });
}

std::vector<std::byte> encode(std::span<const EdgeFound> edges) {
  ByteWriter writer;
  write_list(writer, edges, write_edge);
  return writer.take();
}

Result<std::vector<EdgeFound>> decode_edges(std::span<const std::byte> payload) {
  return read_whole(payload, [](ByteReader& reader) { return read_list(reader, read_edge); });
}

std::vector<std::byte> encode(const SamplerCosts& message) {
  ByteWriter writer;
  for (const auto& tier : message.ticks) {
    for (const auto count : tier.counts) writer.number(count);
    writer.number(tier.seconds);
    writer.number(tier.missed);
  }
  write_list(writer, message.calls, write_call_cost);
  writer.number(message.cpu_seconds);
  writer.number(message.rss_bytes);
  return writer.take();
}

Result<SamplerCosts> decode_costs(std::span<const std::byte> payload) {
  return read_whole(payload, read_costs);
}

}  // namespace muster
