// Everything that can be wrong with a request by itself, checked before any text is produced. Names
// are matched against the grammars of Docker, compose and Kubernetes together, so that one
// deployment fits all three.

#include "deploy/request_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>

#include "deploy/server_api.h"

namespace muster {
namespace {

Error invalid(std::string message) { return {ErrorKind::InvalidArgument, std::move(message)}; }

// Letters, digits and what `more` lists.
bool is_made_of(std::string_view text, std::string_view more) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [more](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x80 && std::isalnum(byte) != 0) || more.find(c) != std::string_view::npos;
  });
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "vendor.com/class=name". Source: Container Device Interface, SPEC.md, "Kind" and "Device name".
bool is_cdi_name(std::string_view id) {
  const auto slash = id.find('/');
  const auto equals = id.find('=');
  if (slash == std::string_view::npos || equals == std::string_view::npos || equals < slash) {
    return false;
  }
  return is_made_of(id.substr(0, slash), ".-_") &&
         is_made_of(id.substr(slash + 1, equals - slash - 1), "-_") &&
         is_made_of(id.substr(equals + 1), ".-_:");
}

Status check_devices(const std::vector<ContainerDevice>& devices) {
  const auto rank = [](const ContainerDevice& device) { return static_cast<int>(device.kind); };
  for (std::size_t i = 0; i < devices.size(); ++i) {
    MUSTER_TRY(check_device_id(devices[i]));
    const bool is_like_first = rank(devices[i]) == rank(devices[0]) &&
                               is_amd(devices[i]) == is_amd(devices[0]) &&
                               is_mig(devices[i]) == is_mig(devices[0]);
    if (!is_like_first) {
      return invalid(fmt::format("one container takes devices of one kind: {} and {}",
                                 devices[0].id, devices[i].id));
    }
    for (std::size_t j = 0; j < i && !devices[i].id.empty(); ++j) {
      if (devices[i].id == devices[j].id) {
        return invalid(fmt::format("a device is named twice: {}", devices[i].id));
      }
    }
  }
  return Done{};
}

// What decides which devices are seen: to set it beside --devices would contradict it.
constexpr std::array<std::string_view, 6> kDeviceVariables{
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",  "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"};

Status check_environment(const ContainerRequest& request) {
  const auto& own = server_facts(request.api).own_variables;
  for (std::size_t i = 0; i < request.environment.size(); ++i) {
    const auto& [name, value] = request.environment[i];
    if (!is_made_of(name, "_") || is_number(name.substr(0, 1))) {
      return invalid(fmt::format("a variable's name has letters, digits and \"_\": \"{}\"", name));
    }
    if (std::find(kDeviceVariables.begin(), kDeviceVariables.end(), name) !=
        kDeviceVariables.end()) {
      return invalid(fmt::format(
          "{} follows from --devices: inside the container they are numbered from 0", name));
    }
    if (std::find(own.begin(), own.end(), name) != own.end()) {
      return invalid(
          fmt::format("{} follows from the other flags and cannot be set by --env", name));
    }
    if (value.find('\0') != std::string::npos || value.find('\n') != std::string::npos) {
      return invalid(fmt::format("a variable's value is one line: {}", name));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (request.environment[j].name == name) {
        return invalid(fmt::format("a variable is given twice: {}", name));
      }
    }
  }
  return Done{};
}

Status check_volumes(const ContainerRequest& request) {
  for (const auto& volume : request.volumes) {
    const bool is_source = volume.is_folder()
                               ? volume.source.find_first_of(":\n") == std::string::npos
                               : is_made_of(volume.source, "_.-") && volume.source.size() > 1;
    const bool is_target =
        volume.target.starts_with('/') && volume.target.find_first_of(":\n") == std::string::npos;
    if (!is_source || !is_target) {
      return invalid(fmt::format("a volume is SOURCE:/PATH or SOURCE:/PATH:ro: \"{}:{}\"",
                                 volume.source, volume.target));
    }
  }
  return Done{};
}

Status check_arguments(const ContainerRequest& request) {
  const auto& own = server_facts(request.api).own_flags;
  for (const auto& word : request.server_arguments) {
    const auto flag = word.substr(0, word.find('='));
    if (std::find(own.begin(), own.end(), flag) != own.end()) {
      return invalid(
          fmt::format("{} follows from muster's own flags and cannot follow \"--\"", flag));
    }
  }
  return Done{};
}

Status check_names(const ContainerRequest& request) {
  if (request.model.empty()) return invalid("which model? Name it with --model");
  const bool is_folder = request.model.starts_with('/');
  if (request.model.find_first_of(is_folder ? ":\n" : " \t\n") != std::string::npos ||
      request.model.starts_with('-')) {
    return invalid(fmt::format("this is no name of a model: \"{}\"", request.model));
  }
  // What Docker takes, less what compose and Kubernetes do not.
  constexpr std::size_t kNameSizeMax = 60;  // of 63, with "-9" for a replica
  const auto& name = request.name;
  const bool has_capital =
      std::any_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (!name.empty() && (!is_made_of(name, "-") || has_capital || name.starts_with('-') ||
                        name.ends_with('-') || name.size() > kNameSizeMax)) {
    return invalid(
        fmt::format("a container's name is at most {} small letters and digits, with \"-\" between "
                    "them: \"{}\"",
                    kNameSizeMax, name));
  }
  if (request.image && (request.image->empty() || request.image->starts_with('-') ||
                        !is_made_of(*request.image, "._-/:@"))) {
    return invalid(fmt::format("this is no name of an image: \"{}\"", *request.image));
  }
  return Done{};
}

}  // namespace

Status check_device_id(const ContainerDevice& device) {
  const auto& id = device.id;
  if (id.empty()) return Done{};  // Kubernetes chooses; the Docker forms ask for a name
  switch (device.kind) {
    case ContainerDeviceKind::Nvidia:
      if (is_number(id) || (id.starts_with("GPU-") && is_made_of(id, "-"))) return Done{};
      return invalid(fmt::format("a GPU is named by index or UUID: \"{}\"", id));
    case ContainerDeviceKind::Mig:
      // "MIG-<uuid>", or "MIG-GPU-<uuid>/<gi>/<ci>" of drivers before 470.
      if (id.starts_with("MIG-") && is_made_of(id, "-/")) return Done{};
      return invalid(fmt::format("a MIG slice is named by its UUID, MIG-…: \"{}\"", id));
    case ContainerDeviceKind::Cdi:
      if (is_cdi_name(id) && !id.ends_with("=all")) return Done{};
      return invalid(fmt::format("a CDI device is VENDOR/CLASS=NAME, one device each: \"{}\"", id));
    case ContainerDeviceKind::Rocm:
      break;
  }
  constexpr std::string_view kRender = "/dev/dri/renderD";
  if (id.starts_with(kRender) && is_number(id.substr(kRender.size()))) return Done{};
  return invalid(fmt::format("an AMD GPU is named by its render node, {}…: \"{}\"", kRender, id));
}

Status check_request(const ContainerRequest& request) {
  MUSTER_TRY(check_names(request));
  MUSTER_TRY(check_devices(request.devices));
  const auto count = request.devices.size();
  if (request.api == ServerApi::Muster && count > 0 && is_amd(request.devices.front())) {
    return Error{ErrorKind::Unsupported,
                 "muster computes on CPUs and NVIDIA GPUs: AMD GPUs are only watched"};
  }
  if (request.copies > 0 && count % request.copies != 0) {
    return invalid(fmt::format("{} devices do not make {} equal copies", count, request.copies));
  }
  const std::size_t last_port = request.port + std::max<std::size_t>(request.devices.size(), 1) - 1;
  const bool is_many =
      request.api == ServerApi::Tei || request.copies > 1 ||
      (request.api != ServerApi::Muster && count > 0 && is_mig(request.devices.front()));
  if (request.port == 0 || (is_many && last_port > UINT16_MAX)) {
    return invalid(
        fmt::format("a port is a number from 1 to 65535, and so is that of the last "
                    "container: {}",
                    is_many ? last_port : request.port));
  }
  if (request.shm_bytes == std::uint64_t{0}) return invalid("--shm-size must be more than 0");
  MUSTER_TRY(check_environment(request));
  MUSTER_TRY(check_volumes(request));
  return check_arguments(request);
}

}  // namespace muster
