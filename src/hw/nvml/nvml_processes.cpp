// The process lists, whose layout depends on the driver's version in a way that it does not state:
// some drivers of the 535 series write entries of 32 bytes through a function that is documented
// with 24. The buffer is filled with a mark beforehand, and what was overwritten tells the size. A
// process in several lists counts once, under the first of MPS, compute and graphics. Source:
// nvml.h 13.3; nvitop.

#include "hw/nvml/nvml_processes.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/file.h"

namespace muster {
namespace {

// Room for the first try; a GPU with more processes takes another.
constexpr std::size_t kEntryCount = 64;
constexpr std::size_t kEntryCountMax = 65536;  // pids of a machine are few; a broken count is not
constexpr int kTries = 3;                      // processes may start between two calls

template <typename Entry>
NvmlProcess read_entry(std::span<const unsigned char> buffer, std::size_t offset) {
  Entry entry;
  std::memcpy(&entry, buffer.data() + offset, sizeof(entry));
  NvmlProcess process;
  process.pid = entry.pid;
  if (entry.used_memory != kNvmlMemoryUnknown) process.memory_bytes = entry.used_memory;
  return process;
}

std::vector<NvmlProcess> read_entries(std::span<const unsigned char> buffer, std::size_t count,
                                      std::size_t stride) {
  std::vector<NvmlProcess> processes;
  for (std::size_t i = 0; i < count; ++i) {
    processes.push_back(stride == sizeof(NvmlProcessV1)
                            ? read_entry<NvmlProcessV1>(buffer, i * stride)
                            : read_entry<NvmlProcessV2>(buffer, i * stride));
  }
  return processes;
}

bool is_unwritten(std::span<const unsigned char> bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](unsigned char byte) { return byte == kNvmlUnwritten; });
}

}  // namespace

std::vector<NvmlProcess> parse_nvml_processes(std::span<const unsigned char> buffer,
                                              std::size_t count, NvmlProcessLayout layout) {
  count = std::min(count, buffer.size() / kNvmlProcessSizeMax);
  if (layout.is_v1) return read_entries(buffer, count, sizeof(NvmlProcessV1));
  auto processes = read_entries(buffer, count, sizeof(NvmlProcessV2));
  const auto beyond = buffer.subspan(count * sizeof(NvmlProcessV2),
                                     count * (kNvmlProcessSizeMax - sizeof(NvmlProcessV2)));
  if (is_unwritten(beyond)) return processes;
  const bool has_pid_0 = std::any_of(processes.begin(), processes.end(),
                                     [](const NvmlProcess& process) { return process.pid == 0; });
  if (layout.may_be_long || has_pid_0) return read_entries(buffer, count, kNvmlProcessSizeMax);
  return processes;
}

void NvmlProcesses::read(NvmlVisit& visit, NvmlDevice device) {
  const auto& nvml = visit.functions();
  struct Kind {
    const NvmlFunctions::Processes& function;
    NvmlOffer& offer;
    GpuProcessKind kind;
  };
  // An MPS client is in the list of compute processes as well, a program that also draws in both
  // of its lists: the first that names it says what it is.
  const std::array kinds{Kind{nvml.mps_processes, mps_, GpuProcessKind::Mps},
                         Kind{nvml.compute_processes, compute_, GpuProcessKind::Compute},
                         Kind{nvml.graphics_processes, graphics_, GpuProcessKind::Graphics}};
  std::vector<std::uint32_t> seen;
  std::vector<GpuProcess> processes;
  bool is_whole = true;
  for (const auto& [function, offer, kind] : kinds) {
    if (offer == NvmlOffer::Absent) continue;
    const auto listed = list(visit, device, function, offer);
    if (!listed) {
      is_whole = is_whole && offer == NvmlOffer::Absent;
      continue;
    }
    for (const auto& process : *listed) {
      const bool is_known = std::find(seen.begin(), seen.end(), process.pid) != seen.end();
      if (process.pid != 0 && is_known) continue;
      seen.push_back(process.pid);
      processes.push_back(name(visit, process, kind));
    }
  }
  const bool is_offered = compute_ == NvmlOffer::Offered || graphics_ == NvmlOffer::Offered ||
                          mps_ == NvmlOffer::Offered;
  if (!is_offered || !is_whole || visit.is_lost()) return;
  visit.set(Reading::GpuProcessCount, static_cast<double>(processes.size()));
  visit.set_processes(std::move(processes));
}

std::optional<std::vector<NvmlProcess>> NvmlProcesses::list(
    NvmlVisit& visit, NvmlDevice device, const NvmlFunctions::Processes& function,
    NvmlOffer& offer) {
  auto room = std::max(kEntryCount, buffer_.size() / kNvmlProcessSizeMax);
  NvmlCode code = kNvmlInsufficientSize;
  for (int i = 0; i < kTries && code == kNvmlInsufficientSize; ++i) {
    buffer_.assign(room * kNvmlProcessSizeMax, kNvmlUnwritten);
    auto count = static_cast<unsigned>(room);
    code = visit.call(function, device, &count, static_cast<void*>(buffer_.data()));
    if (code == kNvmlSuccess) {
      offer = NvmlOffer::Offered;
      const auto& nvml = visit.functions();
      return parse_nvml_processes(buffer_, count,
                                  {nvml.has_v1_processes, nvml.may_have_long_processes});
    }
    if (count > kEntryCountMax) break;
    room = count + kEntryCount;  // some may start until the next try
  }
  offer = offer_after(offer, code, false);
  visit.accept(code, {Reading::GpuProcessCount});
  return std::nullopt;
}

GpuProcess NvmlProcesses::name(NvmlVisit& visit, const NvmlProcess& process,
                               GpuProcessKind kind) const {
  GpuProcess named;
  named.memory_bytes = process.memory_bytes;
  named.kind = kind;
  const auto comm = read_file(root_ / "proc" / std::to_string(process.pid) / "comm", 4096);
  if (comm) {
    named.pid = process.pid;
    named.command = *comm;
    // The kernel ends the name with one line end; more of them are the program's own.
    if (named.command.ends_with('\n')) named.command.pop_back();
    return named;
  }
  std::array<char, 256> text{};
  if (visit.call(visit.functions().process_name, process.pid, text.data(),
                 static_cast<unsigned>(text.size())) == kNvmlSuccess) {
    text.back() = '\0';
    named.command = text.data();
  }
  return named;
}

}  // namespace muster
