// Two sources, none of them whole: KFD knows processes that compute and their memory, the files
// under /proc/PID/fdinfo know those that have a GPU open. A process in both counts once, by KFD's
// figure. The walk over /proc is the expensive part and is shared by all GPUs. Another user's files
// cannot be read without root; such processes are simply missing from the second list.

#include "hw/amd/amd_processes.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/text.h"
#include "hw/kernel_file.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// A walk ends here, whatever the machine runs.
constexpr std::size_t kProcessesMax = 100'000;
constexpr std::size_t kFilesMax = 10'000;

std::optional<std::uint32_t> pid_of(const fs::path& folder) {
  const auto name = folder.filename().string();
  const bool is_number = !name.empty() && std::all_of(name.begin(), name.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; });
  const auto pid = is_number ? leading_number(name) : std::nullopt;
  return pid && *pid <= 1 << 22 ? std::optional(static_cast<std::uint32_t>(*pid)) : std::nullopt;
}

// "drm-memory-vram:  2048 KiB"; without a unit, bytes.
std::uint64_t drm_bytes(std::string_view value) {
  const auto number = leading_number(value).value_or(0);
  if (number < 0 || number > std::int64_t{1} << 42) return 0;
  const auto bytes = static_cast<std::uint64_t>(number);
  if (value.ends_with("KiB")) return bytes << 10;
  return value.ends_with("MiB") ? bytes << 20 : bytes;
}

}  // namespace

std::optional<DrmClient> parse_drm_fdinfo(std::string_view text) {
  DrmClient client;
  bool is_amdgpu = false;
  for (const auto& line : split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto key = std::string_view(line).substr(0, colon);
    const auto value = trim(std::string_view(line).substr(colon + 1));
    if (key == "drm-driver") is_amdgpu = value == "amdgpu";
    if (key == "drm-pdev") client.pci = std::string(value);
    if (key == "drm-client-id") {
      client.id = static_cast<std::uint64_t>(leading_number(value).value_or(0));
    }
    if (key == "drm-memory-vram") client.vram_bytes = drm_bytes(value);
    if (key == "drm-memory-gtt") client.gtt_bytes = drm_bytes(value);
  }
  return is_amdgpu && !client.pci.empty() ? std::optional(std::move(client)) : std::nullopt;
}

std::vector<GpuProcess> AmdProcesses::list(const std::string& pci,
                                           const std::vector<std::uint64_t>& gpu_ids,
                                           bool has_unified_memory) {
  const MutexLock lock(mutex_);
  refresh();
  std::vector<GpuProcess> found;
  for (const auto& process : compute_) {
    std::optional<std::uint64_t> bytes;
    for (const auto id : gpu_ids) {
      const auto used = process.vram_bytes.find(id);
      if (used != process.vram_bytes.end()) bytes = bytes.value_or(0) + used->second;
    }
    if (!bytes) continue;
    found.push_back(
        {.pid = process.pid, .command = command_of(process.pid), .memory_bytes = bytes});
  }
  // A process that computes has the GPU open too; what KFD tells of its memory includes that.
  std::set<std::uint64_t> counted;
  for (const auto& [pid, client] : clients_) {
    const bool computes = std::any_of(compute_.begin(), compute_.end(),
                                      [id = pid](const Compute& one) { return one.pid == id; });
    if (client.pci != pci || computes || !counted.insert(client.id).second) continue;
    const auto bytes = client.vram_bytes + (has_unified_memory ? client.gtt_bytes : 0);
    const auto same = std::find_if(found.begin(), found.end(),
                                   [id = pid](const GpuProcess& one) { return one.pid == id; });
    if (same != found.end()) {
      same->memory_bytes = same->memory_bytes.value_or(0) + bytes;
      continue;
    }
    found.push_back({.pid = pid,
                     .command = command_of(pid),
                     .memory_bytes = bytes,
                     .kind = GpuProcessKind::Graphics});
  }
  return found;
}

void AmdProcesses::refresh() {
  const auto now = std::chrono::steady_clock::now();
  if (refreshed_ && now - *refreshed_ < std::chrono::milliseconds(500)) return;
  refreshed_ = now;
  compute_.clear();
  clients_.clear();
  refresh_compute();
  refresh_clients();
}

void AmdProcesses::refresh_compute() {
  constexpr std::string_view kPrefix = "vram_";
  std::error_code ignored;
  for (fs::directory_iterator folder(root_ / "sys/class/kfd/kfd/proc", ignored), end;
       folder != end && compute_.size() < kProcessesMax; folder.increment(ignored)) {
    const auto pid = pid_of(folder->path());
    if (!pid) continue;
    Compute process{*pid, {}};
    for (fs::directory_iterator file(folder->path(), ignored); file != end;
         file.increment(ignored)) {
      const auto name = file->path().filename().string();
      if (!name.starts_with(kPrefix)) continue;
      const auto id = leading_number(std::string_view(name).substr(kPrefix.size()));
      const auto text = small_text(file->path());
      const auto bytes = text ? leading_number(*text) : std::nullopt;
      if (!id || *id < 0 || !bytes || *bytes < 0) continue;
      process.vram_bytes[static_cast<std::uint64_t>(*id)] = static_cast<std::uint64_t>(*bytes);
    }
    compute_.push_back(std::move(process));
  }
}

void AmdProcesses::refresh_clients() {
  std::error_code ignored;
  std::size_t count = 0;
  for (fs::directory_iterator folder(root_ / "proc", ignored), end;
       folder != end && count < kProcessesMax; folder.increment(ignored)) {
    const auto pid = pid_of(folder->path());
    if (!pid) continue;
    ++count;
    add_clients_of(*pid);
  }
}

void AmdProcesses::add_clients_of(std::uint32_t pid) {
  const auto process = root_ / "proc" / std::to_string(pid);
  std::error_code ignored;
  std::size_t count = 0;
  for (fs::directory_iterator file(process / "fd", ignored), end; file != end && count < kFilesMax;
       file.increment(ignored), ++count) {
    std::error_code failed;
    const auto target = fs::read_symlink(file->path(), failed);
    if (failed || !target.string().starts_with("/dev/dri/")) continue;
    const auto text = small_text(process / "fdinfo" / file->path().filename());
    auto client = text ? parse_drm_fdinfo(*text) : std::nullopt;
    if (client) clients_.push_back({pid, std::move(*client)});
  }
}

std::string AmdProcesses::command_of(std::uint32_t pid) const {
  return small_text(root_ / "proc" / std::to_string(pid) / "comm").value_or(std::string());
}

}  // namespace muster
