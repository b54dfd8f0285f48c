// Every word of `--devices` becomes one device with an id that a container runtime understands.
// NVIDIA GPUs of this machine are named by UUID where the driver gives one, since it does not
// change when GPUs are counted anew. A machine without the GPU can still print a command
// (--dry-run), and then numbers are taken as written and a note says so.

#include "containers/container_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "deploy/request_check.h"
#include "deploy/shard_choice.h"
#include "hw/device_names.h"

namespace muster {
namespace {

constexpr std::uint32_t kCountMax = 1024;  // as in hw/device_names: more is a typing error

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

ContainerDevice device_named(ContainerDeviceKind kind, std::string id) {
  ContainerDevice device;
  device.kind = kind;
  device.id = std::move(id);
  return device;
}

// "cuda", "cuda:1", "2xcuda" taken apart; nullopt for another word.
struct VendorWord {
  std::string kind;                    // "cuda", "rocm"
  std::optional<std::uint32_t> index;  // "cuda:1"
  std::optional<std::uint32_t> count;  // "2xcuda"
};

std::optional<VendorWord> vendor_word(std::string_view word) {
  VendorWord result;
  if (const auto x = word.find('x'); x != std::string_view::npos) {
    if (const auto count = number(word.substr(0, x)); count && *count > 0 && *count <= kCountMax) {
      result.count = count;
      word.remove_prefix(x + 1);
    }
  }
  const auto colon = word.find(':');
  result.kind = word.substr(0, colon);
  if (result.kind != "cuda" && result.kind != "rocm") return std::nullopt;
  if (colon != std::string_view::npos) {
    result.index = number(word.substr(colon + 1));
    if (!result.index || result.count) return std::nullopt;
  }
  return result;
}

// "cpu:0", "2xcpu": shares of the cores, which only muster makes.
bool is_cpu_word(std::string_view word) {
  constexpr std::string_view kIndexed = "cpu:";
  constexpr std::string_view kCounted = "xcpu";
  if (word.starts_with(kIndexed)) return number(word.substr(kIndexed.size())).has_value();
  if (!word.ends_with(kCounted)) return false;
  const auto count = number(word.substr(0, word.size() - kCounted.size()));
  return count && *count > 0;
}

// "mig-1g.5gb", "2xmig-1g.5gb": (how many, the profile).
std::optional<std::pair<std::uint32_t, std::string>> profile_word(std::string_view word) {
  std::uint32_t count = 1;
  // The whole "xmig-" is looked for: an x alone may stand in other names too.
  const auto x = word.find("xmig-");
  if (x != std::string_view::npos) {
    const auto given = number(word.substr(0, x));
    if (!given || *given == 0 || *given > kCountMax) return std::nullopt;
    count = *given;
    word.remove_prefix(x + 1);
  }
  constexpr std::string_view kStart = "mig-";
  if (!word.starts_with(kStart) || word.size() == kStart.size()) return std::nullopt;
  return std::pair(count, std::string(word.substr(kStart.size())));
}

// A device of this machine.
struct HostDevice {
  std::string name;
  ContainerDevice device;
  std::string lost_reason;  // as Device::lost_reason
};

// A container that was given it would not start, or without a UUID it would get another one.
Error lost_error(const std::string& word, const std::string& reason) {
  return Error{ErrorKind::Unavailable, fmt::format("{} is lost: {}", word, reason)};
}

// A GPU that is not on this machine: its place is taken to be its number.
ContainerDevice elsewhere(const std::string& kind, std::uint32_t index) {
  if (kind == "cuda") {
    auto device = device_named(ContainerDeviceKind::Nvidia, std::to_string(index));
    device.host_place = index;
    return device;
  }
  // The kernel numbers render nodes from 128. Source: Linux Documentation/gpu/drm-uapi.rst.
  constexpr std::uint32_t kFirstRenderMinor = 128;
  auto device = device_named(ContainerDeviceKind::Rocm,
                             fmt::format("/dev/dri/renderD{}", kFirstRenderMinor + index));
  device.host_place = index;
  return device;
}

class Parser {
 public:
  Parser(const ContainerHost& host, bool may_be_elsewhere)
      : host_(host), may_be_elsewhere_(may_be_elsewhere) {}

  Status take(const std::string& word) {
    if (word == "none" || word == "cpu") {
      has_none_ = true;
      return Done{};
    }
    if (is_cpu_word(word)) {
      has_none_ = true;
      cpu_words_.push_back(word);
      return Done{};
    }
    if (word == "mps" || word.starts_with("mps:")) {
      return Error{ErrorKind::Unsupported,
                   "a container cannot use Apple's GPU: no runtime hands Metal through"};
    }
    if (const auto vendor = vendor_word(word)) return take_vendor(*vendor, word);
    if (const auto profile = profile_word(word)) {
      for (std::uint32_t i = 0; i < profile->first; ++i) {
        chosen_.devices.push_back(device_named(ContainerDeviceKind::Mig, ""));
        chosen_.devices.back().mig_profile = profile->second;
      }
      return Done{};
    }
    return take_id(word);
  }

  Result<ChosenDevices> finish() {
    if (has_none_ && !chosen_.devices.empty()) {
      return Error{ErrorKind::InvalidArgument,
                   "\"none\" stands alone: a server cannot run on GPUs and on the processor too"};
    }
    if (!cpu_words_.empty()) {
      chosen_.notes.push_back(fmt::format(
          "the server runs on the processor, in one container with all cores that docker gives it: "
          "only muster's own (--api muster) keeps to {}",
          fmt::join(cpu_words_, ",")));
    }
    if (is_elsewhere_) {
      chosen_.notes.push_back(fmt::format(
          "this machine has no such GPU, so the numbers are taken as written: {}", reason_));
    }
    const bool has_amd =
        std::any_of(chosen_.devices.begin(), chosen_.devices.end(),
                    [](const auto& device) { return device.kind == ContainerDeviceKind::Rocm; });
    if (has_amd) chosen_.group_ids = host_.rocm.group_ids;
    return std::move(chosen_);
  }

 private:
  std::vector<HostDevice> devices_of(const std::string& kind) const {
    std::vector<HostDevice> devices;
    if (kind == "cuda") {
      for (const auto& gpu : host_.inventory.gpus) {
        devices.push_back(
            {fmt::format("cuda:{}", devices.size()), container_device(gpu), gpu.lost_reason});
      }
      return devices;
    }
    for (std::uint32_t i = 0; i < host_.rocm.gpus.size(); ++i) {
      auto device = device_named(ContainerDeviceKind::Rocm, host_.rocm.gpus[i].render_file);
      device.host_place = i;
      devices.push_back({fmt::format("rocm:{}", i), std::move(device), ""});
    }
    return devices;
  }

  Status take_vendor(const VendorWord& word, const std::string& text) {
    auto here = devices_of(word.kind);
    if (here.empty()) return take_elsewhere(word, text);
    if (word.index && *word.index < here.size()) {
      const auto& device = here[*word.index];
      if (!device.lost_reason.empty()) return lost_error(text, device.lost_reason);
      chosen_.devices.push_back(device.device);
      return Done{};
    }
    std::erase_if(here, [](const HostDevice& device) { return !device.lost_reason.empty(); });
    const auto lost = word.kind == "cuda" ? lost_gpus_text(host_.inventory) : std::string();
    if (here.empty()) {
      return Error{ErrorKind::Unavailable, fmt::format("no GPU for {}: {}", text, lost)};
    }
    const auto count = word.count.value_or(static_cast<std::uint32_t>(here.size()));
    if (word.index || count > here.size()) {
      std::vector<std::string> names;
      for (const auto& device : here) names.push_back(device.name);
      return Error{ErrorKind::NotFound,
                   fmt::format("no such device: {}; there is {}{}{}", text, fmt::join(names, ", "),
                               lost.empty() ? "" : "; ", lost)};
    }
    for (std::uint32_t i = 0; i < count; ++i) chosen_.devices.push_back(here[i].device);
    if (!lost.empty()) chosen_.notes.push_back(lost);
    return Done{};
  }

  Status take_elsewhere(const VendorWord& word, const std::string& text) {
    reason_ = word.kind == "cuda" ? host_.inventory.gpu_absent_reason.value_or("no NVIDIA GPU")
                                  : "no AMD driver (/sys/class/kfd)";
    if (!may_be_elsewhere_) {
      return Error{
          ErrorKind::Unavailable,
          fmt::format("no GPU for {}: {}; --dry-run prints the command for another machine", text,
                      reason_)};
    }
    if (!word.index && !word.count) {
      return Error{
          ErrorKind::InvalidArgument,
          fmt::format("how many? This machine has no {0} device; say 2x{0} or {0}:0", word.kind)};
    }
    is_elsewhere_ = true;
    const auto first = word.index.value_or(0);
    const auto count = word.index ? 1 : *word.count;
    for (std::uint32_t i = 0; i < count; ++i) {
      chosen_.devices.push_back(elsewhere(word.kind, first + i));
    }
    return Done{};
  }

  // A UUID, a render node or a CDI name.
  Status take_id(const std::string& word) {
    // "cuda:0:1", as `muster devices` lists a slice of this machine.
    for (const auto& gpu : host_.inventory.gpus) {
      const bool is_it = gpu.uuid == word || (gpu.slice && gpu.name() == word);
      if (is_it && !gpu.lost_reason.empty()) return lost_error(word, gpu.lost_reason);
      if (!gpu.slice || gpu.name() != word) continue;
      chosen_.devices.push_back(container_device(gpu));
      return check_device_id(chosen_.devices.back());
    }
    if (word.starts_with("GPU-") && !host_.inventory.gpus.empty()) {
      for (const auto& gpu : MUSTER_TRY(parse_devices(word, host_.inventory, std::nullopt))) {
        chosen_.devices.push_back(container_device(gpu));
      }
      return Done{};
    }
    if (word.starts_with("GPU-") && !may_be_elsewhere_) {
      return Error{ErrorKind::Unavailable,
                   fmt::format("no GPU for {}: {}", word,
                               host_.inventory.gpu_absent_reason.value_or("no NVIDIA GPU"))};
    }
    if (word.find('=') != std::string::npos) return take_cdi(word);
    auto device = device_named(ContainerDeviceKind::Nvidia, word);
    if (word.starts_with("MIG-")) device.kind = ContainerDeviceKind::Mig;
    if (word.starts_with("/dev/")) device.kind = ContainerDeviceKind::Rocm;
    const bool is_id = word.starts_with("GPU-") || device.kind != ContainerDeviceKind::Nvidia;
    if (!is_id) return unknown(word);
    MUSTER_TRY(check_device_id(device));
    chosen_.devices.push_back(place_render_node(std::move(device)));
    return Done{};
  }

  ContainerDevice place_render_node(ContainerDevice device) const {
    for (std::uint32_t i = 0; i < host_.rocm.gpus.size(); ++i) {
      if (host_.rocm.gpus[i].render_file == device.id) device.host_place = i;
    }
    return device;
  }

  Status take_cdi(const std::string& word) {
    auto device = device_named(ContainerDeviceKind::Cdi, word);
    MUSTER_TRY(check_device_id(device));
    // Numbers are nvidia-ctk's and amd-ctk's: as the drivers count, which is in PCI order.
    device.host_place = number(std::string_view(word).substr(word.find('=') + 1));
    chosen_.devices.push_back(std::move(device));
    return Done{};
  }

  Status unknown(const std::string& word) const {
    if (const auto meant = device_name_meant(word); meant && *meant != "auto") {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("unknown device \"{}\": did you mean {}?", word, *meant)};
    }
    if (word.starts_with("cuda:") && std::count(word.begin(), word.end(), ':') == 2) {
      return Error{
          ErrorKind::NotFound,
          fmt::format("no slice {} on this machine; of another one say its UUID (MIG-…)", word)};
    }
    std::vector<std::string> candidates{"none", "cpu", "cuda", "rocm", "cuda:0", "2xcuda"};
    for (const auto& gpu : host_.inventory.gpus) {
      candidates.push_back(gpu.name());
      if (gpu.uuid) candidates.push_back(*gpu.uuid);
    }
    const auto nearest = nearest_name(word, candidates);
    return Error{ErrorKind::InvalidArgument,
                 nearest ? fmt::format("unknown device \"{}\": did you mean {}?", word, *nearest)
                         : fmt::format("unknown device \"{}\": say cuda:0, rocm:0, a UUID (GPU-…, "
                                       "MIG-…), a CDI name (nvidia.com/gpu=0) or none",
                                       word)};
  }

  const ContainerHost& host_;
  const bool may_be_elsewhere_;
  ChosenDevices chosen_;
  bool has_none_ = false;
  std::vector<std::string> cpu_words_;
  bool is_elsewhere_ = false;
  std::string reason_;
};

}  // namespace

ContainerDevice container_device(const Device& gpu) {
  const auto kind = gpu.slice ? ContainerDeviceKind::Mig : ContainerDeviceKind::Nvidia;
  auto device = device_named(kind, gpu.uuid.value_or(gpu.slice ? "" : std::to_string(gpu.index)));
  if (!gpu.slice) device.host_place = gpu.index;
  device.model = gpu.model;
  device.compute_capability = gpu.compute_capability;
  return device;
}

Result<ChosenDevices> parse_container_devices(const std::vector<std::string>& words,
                                              const ContainerHost& host, bool may_be_elsewhere) {
  Parser parser(host, may_be_elsewhere);
  for (const auto& list : words) {
    for (const auto& word : split(list, ',')) MUSTER_TRY(parser.take(std::string(trim(word))));
  }
  return parser.finish();
}

Result<std::vector<std::string>> choose_devices(std::span<const DeviceCandidate> candidates,
                                                std::uint64_t needed_bytes, ServerApi api,
                                                const ModelHeads& heads) {
  if (candidates.empty()) return Error{ErrorKind::Unavailable, "there is no GPU to choose from"};
  std::vector<std::size_t> order(candidates.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  // The fewest devices that suffice are found greedily: with the most free memory first, no other
  // set of the same size has more. The sum is compared, not the share of each device; a count that
  // the model's heads cannot be divided by is passed over.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return candidates[a].free_bytes > candidates[b].free_bytes;
  });
  const std::size_t count_max = api == ServerApi::Tei ? 1 : order.size();
  std::uint64_t sum = 0;
  for (std::size_t count = 1; count <= count_max; ++count) {
    sum += candidates[order[count - 1]].free_bytes;
    const bool is_legal = choose_shards(api, static_cast<std::uint32_t>(count), heads).has_value();
    if (sum < needed_bytes || !is_legal) continue;
    order.resize(count);
    // Names come out in the machine's order, not in that of their free memory.
    std::sort(order.begin(), order.end());
    std::vector<std::string> names;
    for (const auto i : order) names.push_back(candidates[i].name);
    return names;
  }
  return Error{ErrorKind::ResourceExhausted,
               fmt::format("the model's weights take {}, more than {} have together: {}",
                           human_bytes(needed_bytes),
                           count_max == 1 ? "one GPU can" : fmt::format("{} GPUs", count_max),
                           human_bytes(sum))};
}

}  // namespace muster
