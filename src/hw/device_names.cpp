// The notation in which users name devices. What is not a name is compared with the habits of other
// programs first ("gpu:1", "0,1", "2cpu") and by spelling only then, so that a refusal says what to
// type. A name is resolved against the inventory, hidden devices included, because "hidden by
// CUDA_VISIBLE_DEVICES" helps more than "no such device"; so does what the driver says of a GPU
// that is lost. Simulated devices are refused here: they cannot run a model.

#include "hw/device_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>

#include "base/text.h"
#include "spec/standin_device.h"

namespace muster {
namespace {

// More processes than this on one machine is a typing error; no machine has so many accelerators.
constexpr std::uint32_t kDeviceCountMax = 1024;

// Shorter beginnings of a UUID are more likely another mistake. "GPU-" and "MIG-" come first.
constexpr std::size_t kUuidPrefixSize = 4;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::optional<std::uint32_t> parse_count(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// One name of the list, taken apart: "2xcpu" has a count, "cuda:1" an index, "cuda:1:0" a slice
// too.
struct Name {
  std::string text;  // as given
  std::string kind;  // "auto", "cpu", "cuda", …
  std::optional<std::uint32_t> count;
  std::optional<std::uint32_t> index;
  std::optional<std::uint32_t> slice;
};

bool is_kind(std::string_view word) {
  constexpr std::array<std::string_view, 7> kKinds{"auto", "cpu", "cuda",   "rocm",
                                                   "mps",  "sim", "standin"};
  return std::find(kKinds.begin(), kKinds.end(), word) != kKinds.end();
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

std::string join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<std::string> names_of(const std::vector<Device>& devices) {
  std::vector<std::string> names;
  for (const auto& device : devices) names.push_back(device.name());
  return names;
}

// "2xcpu", "cuda:1", "auto"; nullopt when it is none of these forms.
std::optional<Name> take_apart(std::string_view text) {
  Name name{.text = std::string(text), .kind = lower(text), .count = {}, .index = {}, .slice = {}};
  if (name.kind.starts_with("sim:")) {
    name.kind = "sim";
    return name;
  }
  const auto x = name.kind.find('x');
  if (x != std::string::npos && is_digits(std::string_view(name.kind).substr(0, x))) {
    name.count = parse_count(std::string_view(name.kind).substr(0, x)).value_or(UINT32_MAX);
    name.kind.erase(0, x + 1);
  }
  const auto colon = name.kind.find(':');
  if (colon != std::string::npos) {
    const auto numbers = split(std::string_view(name.kind).substr(colon + 1), ':');
    const bool may_have_slice = name.kind.starts_with("cuda:");
    if (name.count || numbers.size() > (may_have_slice ? 2U : 1U)) return std::nullopt;
    if (!std::all_of(numbers.begin(), numbers.end(), is_digits)) return std::nullopt;
    name.index = parse_count(numbers[0]).value_or(UINT32_MAX);
    if (numbers.size() > 1) name.slice = parse_count(numbers[1]).value_or(UINT32_MAX);
    name.kind.resize(colon);
  }
  const bool is_plain_auto = name.kind != "auto" || (!name.count && !name.index);
  return is_kind(name.kind) && is_plain_auto ? std::optional(name) : std::nullopt;
}

// "gpu" and "nvidia" are what others call cuda; empty for what is no kind.
std::string kind_meant(std::string_view word) {
  for (const auto* name : {"gpu", "gpus", "nvidia"}) {
    if (word == name) return "cuda";
  }
  return word == "cpu" || word == "cuda" ? std::string(word) : std::string();
}

// "cpu:0-2" as "cpu:0,cpu:1,cpu:2"; nullopt where it is no such range, or a long one.
std::optional<std::string> range_meant(const std::string& kind, std::string_view numbers) {
  constexpr std::uint32_t kMost = 64;  // a longer list helps nobody
  const auto dash = numbers.find('-');
  const auto first = parse_count(numbers.substr(0, dash));
  const auto last = dash == numbers.npos ? first : parse_count(numbers.substr(dash + 1));
  if (!first || !last || *last < *first || *last - *first >= kMost) return std::nullopt;
  std::string text;
  for (auto i = *first; i <= *last; ++i) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", kind, i);
  }
  return text;
}

// The whole list where each of its names is one of another program's: "0,1" is "cuda:0,cuda:1", and
// a number behind "cpu:0" is a CPU's.
std::optional<std::string> list_meant(std::string_view list) {
  std::string text;
  std::string kind = "cuda";
  for (const auto& piece : split(list, ',')) {
    const std::string word(trim(piece));
    const auto name = take_apart(word);
    if (name && name->index) kind = name->kind;
    auto meant =
        is_digits(word) ? std::optional(fmt::format("{}:{}", kind, word)) : device_name_meant(word);
    if (!meant && !is_device_name_form(word)) return std::nullopt;
    text += (text.empty() ? "" : ",") + meant.value_or(word);
  }
  return text;
}

Error unknown_name(const std::string& text, std::string_view list, const Inventory& inventory) {
  if (const auto meant = list_meant(list)) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("unknown device \"{}\": did you mean {}?", text, *meant)};
  }
  std::vector<std::string> candidates{"auto", "cpu", "cuda", "2xcpu", "2xcuda"};
  for (const auto* devices : {&inventory.cpus, &inventory.gpus}) {
    for (const auto& device : *devices) {
      candidates.push_back(device.name());
      if (device.uuid) candidates.push_back(*device.uuid);
    }
  }
  const auto nearest = nearest_name(text, candidates);
  return Error{ErrorKind::InvalidArgument,
               nearest ? fmt::format("unknown device \"{}\": did you mean {}?", text, *nearest)
                       : fmt::format("unknown device \"{}\": say auto, cpu, cpu:0, 2xcpu, cuda:0 "
                                     "or the UUID of a GPU",
                                     text)};
}

// The CPUs that `count` devices share: one a core, or every logical one when the cores do not
// suffice and no quota forbids to use more.
std::vector<std::uint32_t> shared_cpus(const Inventory& inventory, std::size_t count) {
  std::vector<std::uint32_t> cpus;
  for (const auto& device : inventory.cpus) {
    cpus.insert(cpus.end(), device.cpus.begin(), device.cpus.end());
  }
  const bool may_use_all = !inventory.cpu_limit_cores && inventory.allowed_cpus.size() >= count;
  return cpus.size() < count && may_use_all ? inventory.allowed_cpus : cpus;
}

std::string count_of_cores(std::size_t count) {
  return fmt::format("{} core{}", count, count == 1 ? "" : "s");
}

Result<std::vector<Device>> cpu_share(std::uint32_t count, const Inventory& inventory) {
  const auto cpus = shared_cpus(inventory, count);
  if (count > cpus.size()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}xcpu asks for more devices than this process has: {}", count,
                             count_of_cores(cpus.size()))};
  }
  std::vector<Device> devices;
  for (std::uint32_t i = 0; i < count; ++i) {
    // Even to within one core, without a gap: share i is [i * n / count, (i + 1) * n / count).
    const auto begin = i * cpus.size() / count;
    const auto end = (i + 1) * cpus.size() / count;
    Device device = inventory.cpus.front();
    device.index = i;
    device.cpus.assign(cpus.begin() + static_cast<std::ptrdiff_t>(begin),
                       cpus.begin() + static_cast<std::ptrdiff_t>(end));
    if (device.memory_total_bytes) device.memory_total_bytes = *device.memory_total_bytes / count;
    devices.push_back(std::move(device));
  }
  return devices;
}

// The GPUs that a worker can run on; one that is hidden or lost is none of them.
std::vector<Device> usable_gpus(const Inventory& inventory) {
  std::vector<Device> usable;
  for (const auto& gpu : inventory.gpus) {
    if (gpu.kind == DeviceKind::Cuda && gpu.is_usable()) usable.push_back(gpu);
  }
  return usable;
}

// Of one that is not usable.
Error unusable_error(const Device& gpu, std::string_view text, const Inventory& inventory) {
  const auto names = names_of(usable_gpus(inventory));
  const auto usable = names.empty() ? std::string("none") : join(names);
  if (!gpu.lost_reason.empty()) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("{} is lost: {}; usable: {}", text, gpu.lost_reason, usable)};
  }
  return Error{ErrorKind::NotFound,
               fmt::format("{} is hidden by {}; visible: {}", text, gpu.hidden_by, usable)};
}

// None of the GPUs is usable.
std::string why_no_gpu(const Inventory& inventory) {
  if (inventory.gpus.empty()) return inventory.gpu_absent_reason.value_or("no reason given");
  auto text = lost_gpus_text(inventory);
  for (const auto& gpu : inventory.gpus) {
    if (!gpu.lost_reason.empty()) continue;
    text +=
        fmt::format("{}{} is hidden by {}", text.empty() ? "" : "; ", gpu.name(), gpu.hidden_by);
  }
  return text;
}

Error no_gpu_error(const Name& name, const Inventory& inventory) {
  return Error{ErrorKind::Unavailable, fmt::format("{} needs a GPU, and there is none: {}",
                                                   name.text, why_no_gpu(inventory))};
}

// The first of `usable`, or all of them without a count. `what` they are in plural: "GPUs".
Result<std::vector<Device>> first_of(const std::vector<Device>& usable, const Name& name,
                                     std::string_view what) {
  if (name.count && *name.count > usable.size()) {
    return Error{ErrorKind::NotFound, fmt::format("{} asks for more {} than there are: {}",
                                                  name.text, what, join(names_of(usable)))};
  }
  const auto count = name.count.value_or(static_cast<std::uint32_t>(usable.size()));
  return std::vector<Device>(usable.begin(), usable.begin() + count);
}

Result<std::vector<Device>> gpu_choice(const Name& name, const Inventory& inventory) {
  const auto usable = usable_gpus(inventory);
  if (usable.empty()) return no_gpu_error(name, inventory);
  auto chosen = first_of(usable, name, "GPUs");
  const auto lost = lost_gpus_text(inventory);
  if (chosen || lost.empty()) return chosen;
  return Error{chosen.error().kind, fmt::format("{}; {}", chosen.error().message, lost)};
}

Result<std::vector<Device>> one_of(std::vector<Device> devices, const Name& name) {
  if (!name.index) return devices;
  std::vector<Device> slices;
  for (auto& device : devices) {
    if (device.index != *name.index) continue;
    if (device.slice == name.slice) return std::vector<Device>{std::move(device)};
    slices.push_back(device);
  }
  if (!slices.empty() && slices.front().slice && !name.slice) {
    return Error{ErrorKind::InvalidArgument, fmt::format("{} is split into MIG slices: say {}",
                                                         name.text, join(names_of(slices)))};
  }
  return Error{ErrorKind::NotFound,
               fmt::format("no such device: {}; there is {}", name.text, join(names_of(devices)))};
}

// A lost GPU stands for its slices, of which its driver tells nothing any more.
Result<std::vector<Device>> one_gpu(const Name& name, const Inventory& inventory) {
  for (const auto& gpu : inventory.gpus) {
    const bool is_all_of_it = !gpu.lost_reason.empty() && !gpu.slice;
    const bool is_meant = gpu.index == name.index && (is_all_of_it || gpu.slice == name.slice);
    if (is_meant && !gpu.is_usable()) return unusable_error(gpu, name.text, inventory);
  }
  auto usable = usable_gpus(inventory);
  if (usable.empty()) return no_gpu_error(name, inventory);
  return one_of(std::move(usable), name);
}

Result<std::vector<Device>> standin_choice(const Name& name, const Inventory& inventory) {
  if (inventory.standins.empty()) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("{} needs {} beside muster-worker: it is built with the tests, and in "
                             "no package",
                             name.text, kStandinLibrary)};
  }
  if (name.index) return one_of(inventory.standins, name);
  return first_of(inventory.standins, name, "stand-in devices");
}

Result<std::vector<Device>> by_kind(const Name& name, const Inventory& inventory) {
  if (name.count && (*name.count == 0 || *name.count > kDeviceCountMax)) {
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("the number of devices must be 1 to {}: \"{}\"", kDeviceCountMax, name.text)};
  }
  if (name.kind == "sim") {
    return Error{ErrorKind::Unsupported,
                 fmt::format("simulated machines plan and schedule; they cannot run a model: {}",
                             name.text)};
  }
  if (name.kind == "rocm" || name.kind == "mps") {
    return Error{
        ErrorKind::Unsupported,
        fmt::format("muster runs on cpu and cuda devices; it cannot run on {}", name.text)};
  }
  if (name.kind == "auto") {
    auto usable = usable_gpus(inventory);
    return usable.empty() ? inventory.cpus : usable;
  }
  if (name.kind == "standin") return standin_choice(name, inventory);
  if (name.kind == "cuda") {
    return name.index ? one_gpu(name, inventory) : gpu_choice(name, inventory);
  }
  if (name.count) return cpu_share(*name.count, inventory);
  return one_of(inventory.cpus, name);
}

Status bound_cores(Device& device, std::uint32_t core_count) {
  if (core_count == 0 || core_count > device.cpus.size()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("cores per device must be 1 to what {} has, {}: {}", device.name(),
                             count_of_cores(device.cpus.size()), core_count)};
  }
  device.cpus.resize(core_count);
  return Done{};
}

// A UUID or the beginning of one; nullopt when no GPU fits.
Result<std::optional<Device>> by_uuid(std::string_view text, const Inventory& inventory) {
  std::vector<Device> found;
  for (const auto& gpu : inventory.gpus) {
    if (gpu.uuid && lower(*gpu.uuid).starts_with(lower(text))) found.push_back(gpu);
  }
  if (found.size() > 1) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("\"{}\" fits more than one GPU: {}", text, join(names_of(found)))};
  }
  if (found.empty()) return std::optional<Device>{};
  return std::optional(std::move(found.front()));
}

bool looks_like_uuid(std::string_view text) {
  const auto small = lower(text);
  return small.size() > kUuidPrefixSize && (small.starts_with("gpu-") || small.starts_with("mig-"));
}

Result<std::vector<Device>> parse_name(std::string_view text, std::string_view list,
                                       const Inventory& inventory) {
  if (looks_like_uuid(text)) {
    if (auto device = MUSTER_TRY(by_uuid(text, inventory))) {
      if (!device->is_usable()) return unusable_error(*device, text, inventory);
      return std::vector{*std::move(device)};
    }
    const auto reason = inventory.gpus.empty() ? inventory.gpu_absent_reason.value_or("none")
                                               : join(names_of(inventory.gpus));
    const auto lost = lost_gpus_text(inventory);  // a lost one may not tell its UUID
    return Error{ErrorKind::NotFound, fmt::format("no GPU has this UUID: {}; GPUs: {}{}{}", text,
                                                  reason, lost.empty() ? "" : "; ", lost)};
  }
  const auto name = take_apart(text);
  if (!name) return unknown_name(std::string(text), list, inventory);
  return by_kind(*name, inventory);
}

}  // namespace

Result<std::vector<Device>> parse_devices(std::string_view text, const Inventory& inventory,
                                          std::optional<std::uint32_t> cores_per_device) {
  std::vector<Device> devices;
  for (const auto& piece : split(text, ',')) {
    const auto name = trim(piece);
    if (name.empty()) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("an empty device name in \"{}\": say auto, 2xcpu or cuda:0", text)};
    }
    for (auto& device : MUSTER_TRY(parse_name(name, text, inventory))) {
      const auto same = [&](const Device& other) { return other.name() == device.name(); };
      if (std::any_of(devices.begin(), devices.end(), same)) {
        return Error{ErrorKind::InvalidArgument,
                     fmt::format("a device is named twice: {} in \"{}\"", device.name(), text)};
      }
      if (cores_per_device && device.kind == DeviceKind::Cpu) {
        MUSTER_TRY(bound_cores(device, *cores_per_device));
      }
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

std::optional<std::string> device_name_meant(std::string_view given) {
  const auto word = lower(given);
  if (word == "all") return "auto";
  if (is_digits(word)) return fmt::format("cuda:{}", word);
  const auto colon = word.find(':');
  const auto digit = word.find_first_of("0123456789");
  if (colon != std::string::npos) {
    const auto kind = kind_meant(std::string_view(word).substr(0, colon));
    const auto numbers = std::string_view(word).substr(colon + 1);
    const bool is_right_already = kind == word.substr(0, colon) && is_digits(numbers);
    return kind.empty() || is_right_already ? std::nullopt : range_meant(kind, numbers);
  }
  if (digit == 0) {  // "2cpu", "2xgpu"
    const auto end = word.find_first_not_of("0123456789");
    const bool has_x = word[end] == 'x';
    const auto name = std::string_view(word).substr(end + (has_x ? 1 : 0));
    const auto kind = kind_meant(name);
    if (kind.empty() || (has_x && kind == name)) return std::nullopt;
    return fmt::format("{}x{}", word.substr(0, end), kind);
  }
  const auto kind = kind_meant(std::string_view(word).substr(0, digit));
  if (kind.empty()) return std::nullopt;
  if (digit != std::string::npos) return range_meant(kind, std::string_view(word).substr(digit));
  return kind == word ? std::nullopt : std::optional(kind);
}

bool is_device_name_form(std::string_view word) {
  return looks_like_uuid(word) || take_apart(word).has_value();
}

std::string lost_gpus_text(const Inventory& inventory) {
  std::string text;
  for (const auto& gpu : inventory.gpus) {
    if (gpu.lost_reason.empty()) continue;
    text += fmt::format("{}{} is lost: {}", text.empty() ? "" : "; ", gpu.name(), gpu.lost_reason);
  }
  return text;
}

namespace {

bool is_gpus_without_number(const std::optional<Name>& name) {
  return name && !name->index && (name->kind == "auto" || name->kind == "cuda");
}

}  // namespace

bool takes_gpus_there_are(std::string_view text) {
  const auto pieces = split(text, ',');
  return std::any_of(pieces.begin(), pieces.end(), [](const std::string& piece) {
    return is_gpus_without_number(take_apart(trim(piece)));
  });
}

bool takes_all_gpus(std::string_view text) {
  const auto pieces = split(text, ',');
  return std::any_of(pieces.begin(), pieces.end(), [](const std::string& piece) {
    const auto name = take_apart(trim(piece));
    return is_gpus_without_number(name) && !name->count;
  });
}

bool may_name_gpus(std::string_view text) {
  const auto pieces = split(text, ',');
  return std::any_of(pieces.begin(), pieces.end(), [](const std::string& piece) {
    const auto name = take_apart(trim(piece));
    return !name || (name->kind != "cpu" && name->kind != "standin");
  });
}

}  // namespace muster
