#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "terminal/input_event.h"
#include "views/top_data.h"

namespace muster {

enum class TopPage : std::uint8_t { Devices, Energy, Processes, Help };

enum class SortKey : std::uint8_t { Device, Name, Busy, Memory, Power, Temperature };
inline constexpr std::size_t kSortKeyCount = 6;

/// "device", "busy", …
std::string_view sort_key_name(SortKey key);

/// A process that is asked to end once the next key says so.
struct SignalQuestion {
  std::uint32_t pid = 0;
  std::string command;
};

/// What somebody looks at, and how.
struct TopState {
  TopPage page = TopPage::Devices;
  SortKey sort = SortKey::Device;
  bool is_reversed = false;  // else devices and names rise, numbers fall
  std::string filter = {};
  bool is_typing_filter = false;
  bool is_paused = false;
  bool has_keys = true;                      // false: a frame that is printed
  std::optional<std::uint32_t> device = {};  // chosen; into TelemetrySnapshot::devices
  std::optional<std::uint32_t> pid = {};     // chosen on the page of processes
  std::optional<SignalQuestion> question = {};
  std::string notice = {};  // what came of the last key, until the next one
};

/// A line of the list of processes: what a driver says of it on one device, what the kernel does,
/// or both.
struct ShownProcess {
  std::optional<std::uint32_t> device;  // into TelemetrySnapshot::devices
  const GpuProcess* gpu = nullptr;      // into the snapshot; at least one of the two is there
  const HostProcess* host = nullptr;

  std::uint32_t pid() const { return gpu ? gpu->pid : host->pid; }
  std::string command() const {
    return gpu && !gpu->command.empty() ? gpu->command : host ? host->command : "";
  }
};

/// The devices that the filter lets through, sorted; slices stay below their GPU.
std::vector<std::uint32_t> shown_devices(const TelemetrySnapshot& snapshot, const TopState& state);

/// The processes of the chosen device, else of all, that the filter lets through: those with the
/// most GPU memory first, then those with the most CPU time. One that runs on a slice is told there
/// and not once more of its GPU. Of a printed frame (`has_keys` false), at most ten that are on no
/// GPU.
std::vector<ShownProcess> shown_processes(const TelemetrySnapshot& snapshot, const TopState& state);

/// Where things stand on the screen that was drawn last, for the mouse.
struct TopLayout {
  struct SortTitle {
    std::size_t begin = 0;  // columns
    std::size_t end = 0;
    SortKey key = SortKey::Device;
  };
  struct Line {
    std::size_t row = 0;
    std::optional<std::uint32_t> device;
    std::optional<std::uint32_t> pid;
  };
  std::optional<std::size_t> title_row;
  std::vector<SortTitle> titles;
  std::vector<Line> lines;
  std::size_t page_size = 1;  // rows that PageUp and PageDown go by
};

enum class TopRequestKind : std::uint8_t {
  None,
  Quit,
  StepBack,
  StepOn,
  PlayOrStop,
  Faster,
  Slower,
  EndProcess,   // SIGTERM
  KillProcess,  // SIGKILL
};

/// What is left to do for the one who owns the screen.
struct TopRequest {
  TopRequestKind kind = TopRequestKind::None;
  std::uint32_t pid = 0;  // EndProcess, KillProcess
  std::string command = {};
};

/// Takes a key or a click. Pure: `state` is the only thing that changes.
TopRequest handle_input(TopState& state, const InputEvent& event, const TopLayout& layout,
                        const TopData& data);

}  // namespace muster
