// From flags to the request that src/deploy plans. The order matters: what the model is must be
// known before devices can be chosen by its size (deploy_devices.cpp). A model that this program
// cannot read is no error unless its size is asked for, because the server in the container may
// know it.

#include "cli/deploy_options.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "base/text.h"
#include "cli/deploy_devices.h"
#include "cli/memory_size.h"
#include "containers/container_model.h"
#include "deploy/server_api.h"
#include "modelfile/hub_cache.h"
#include "modelfile/model_catalogue.h"
#include "modelfile/model_folder.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

Error invalid(std::string message) { return {ErrorKind::InvalidArgument, std::move(message)}; }

Result<std::uint16_t> parse_port(const std::string& text) {
  std::uint32_t port = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (code != std::errc{} || end != text.data() + text.size() || port == 0 || port > UINT16_MAX) {
    return invalid(fmt::format("--port must be a whole number from 1 to 65535: \"{}\"", text));
  }
  return static_cast<std::uint16_t>(port);
}

// Docker takes addresses only for a published port; a name would fail there with a worse message.
Result<std::string> parse_host(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> ignored{};
  if (inet_pton(AF_INET, text.c_str(), ignored.data()) == 1 ||
      inet_pton(AF_INET6, text.c_str(), ignored.data()) == 1) {
    return text;
  }
  return invalid(fmt::format(
      "--host is an address of this machine, such as 127.0.0.1 or 0.0.0.0 for all: \"{}\"", text));
}

Result<EnvironmentVariable> parse_variable(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return invalid(fmt::format("--env is NAME=VALUE: \"{}\"", text));
  }
  return EnvironmentVariable{text.substr(0, equals), text.substr(equals + 1)};
}

Result<ContainerVolume> parse_volume(const std::string& text) {
  const auto parts = split(text, ':');
  const bool is_read_only = parts.size() == 3 && parts[2] == "ro";
  if ((parts.size() != 2 && !is_read_only) || parts[0].empty()) {
    return invalid(fmt::format("--volume is SOURCE:/PATH or SOURCE:/PATH:ro: \"{}\"", text));
  }
  // A source with a slash or a dot in front is a folder here and becomes absolute, as docker asks
  // for; another one is the name of a volume.
  ContainerVolume volume{parts[0], parts[1], is_read_only};
  if (parts[0].find('/') != std::string::npos || parts[0].starts_with('.')) {
    std::error_code error;
    volume.source = fs::absolute(parts[0], error).lexically_normal().string();
    if (error) return system_error(parts[0], "find", error.value());
  }
  return volume;
}

Result<DeployFormat> parse_format(const std::string& text) {
  constexpr std::array<std::string_view, 3> kNames{"docker", "compose", "kubernetes"};
  const auto* found = std::find(kNames.begin(), kNames.end(), text);
  if (found != kNames.end()) return static_cast<DeployFormat>(found - kNames.begin());
  const auto nearest = nearest_name(text, std::vector<std::string>(kNames.begin(), kNames.end()));
  return invalid(fmt::format("unknown format: \"{}\"; {}", text,
                             nearest ? fmt::format("did you mean {}?", *nearest)
                                     : fmt::format("there is {}", fmt::join(kNames, ", "))));
}

// Images differ by architecture, and what is published for the one may not be for the other.
bool is_arm64_host() {
  utsname name{};
  return uname(&name) == 0 && std::string_view(name.machine) == "aarch64";
}

bool is_gguf(const std::string& model) { return model.ends_with(".gguf"); }

// A folder or a .gguf file that is here is mounted; any other name is one of the hub.
Result<std::string> model_name(const std::string& model, ServerApi api) {
  std::error_code ignored;
  const bool is_file = is_gguf(model) && fs::is_regular_file(model, ignored);
  if (is_file && api != ServerApi::Muster) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}: a .gguf file is for --api muster; {} gets a folder or a name on "
                             "the hub",
                             model, server_facts(api).title)};
  }
  if (is_file || fs::is_directory(model, ignored)) {
    return fs::absolute(model, ignored).lexically_normal().string();
  }
  const bool is_own_file = is_gguf(model) && api == ServerApi::Muster;
  if (is_own_file || model.starts_with('/') || model.starts_with('.') || model.starts_with('~')) {
    return Error{ErrorKind::NotFound,
                 fmt::format("{}: no such {}", model, is_gguf(model) ? "file" : "folder")};
  }
  return model;
}

// Said here, since the server in the container would end with it.
Status check_decoder_devices(const std::string& model, const ContainerRequest& request) {
  if (!is_gguf(request.model) || request.api != ServerApi::Muster || request.devices.empty()) {
    return Done{};
  }
  return Error{ErrorKind::Unsupported,
               fmt::format("{}: muster computes decoders on CPUs only: use --devices cpu", model)};
}

// muster serves what is in a folder or the hub cache, and fetches nothing itself: the cache of this
// machine goes into the container where it has the model, else a run of `muster pull` comes first.
Status name_for_muster(DeployOptions& options) {
  auto& request = options.request;
  if (request.model.starts_with('/')) return Done{};
  const auto found = find_model(request.model);
  if (found) {
    request.model = model_name_of(*found);
    // A cluster has caches of its own.
    if (options.format != DeployFormat::Kubernetes) {
      std::error_code ignored;
      request.hub_cache = fs::absolute(hub_cache(), ignored).lexically_normal().string();
    }
    return Done{};
  }
  if (request.model.find('/') != std::string::npos) return Done{};
  const auto* known = find_in_catalogue(request.model);
  if (known == nullptr) {
    return Error{found.error().kind,
                 fmt::format("{}; or name it as ORG/NAME, and it is fetched into the container's "
                             "own volume",
                             found.error().message)};
  }
  request.model = known->id;
  return Done{};
}

Status read_simple_flags(const Arguments& arguments, ContainerRequest& request) {
  request.image = arguments.value("--image");
  request.name = arguments.value("--container-name").value_or("");
  if (arguments.has("--container-name") && request.name.empty()) {
    return invalid("--container-name must not be empty");
  }
  if (const auto host = arguments.value("--host")) request.host = MUSTER_TRY(parse_host(*host));
  if (const auto port = arguments.value("--port")) request.port = MUSTER_TRY(parse_port(*port));
  if (const auto size = arguments.value("--shm-size")) {
    request.shm_bytes = MUSTER_TRY(parse_memory_size("--shm-size", *size));
  }
  for (const auto& text : arguments.values("--env")) {
    request.environment.push_back(MUSTER_TRY(parse_variable(text)));
  }
  for (const auto& text : arguments.values("--volume")) {
    request.volumes.push_back(MUSTER_TRY(parse_volume(text)));
  }
  request.server_arguments.assign(arguments.positionals.begin() + 1, arguments.positionals.end());
  if (!request.server_arguments.empty() && !request.server_arguments.front().starts_with('-')) {
    return invalid(
        fmt::format("one word too many: \"{}\"; words for the server follow \"--\" and "
                    "begin with a flag",
                    request.server_arguments.front()));
  }
  return Done{};
}

}  // namespace

Result<DeployOptions> deploy_options(const Arguments& arguments, const ContainerHost& host) {
  DeployOptions options;
  const auto api = arguments.value("--api");
  if (!api) return invalid("which server? Name it with --api: tgi, tei, vllm or muster");
  options.request.api = MUSTER_TRY(parse_server_api(*api));
  const auto model = arguments.value("--model");
  if (!model || model->empty()) return invalid("which model? Name it with --model");
  options.request.model = MUSTER_TRY(model_name(*model, options.request.api));
  options.request.is_arm64 = is_arm64_host();
  options.format = MUSTER_TRY(parse_format(arguments.value("--format").value_or("docker")));
  options.is_dry_run = arguments.has("--dry-run") || options.format != DeployFormat::Docker;
  MUSTER_TRY(read_simple_flags(arguments, options.request));
  const auto facts = read_model_facts(*model);
  if (!facts && !is_model_unknown(facts.error())) return facts.error();
  if (facts) options.request.heads = facts->heads;
  if (options.request.api == ServerApi::Muster) MUSTER_TRY(name_for_muster(options));
  MUSTER_TRY(choose_deploy_devices(arguments, host, facts, options));
  MUSTER_TRY(check_decoder_devices(*model, options.request));
  return options;
}

}  // namespace muster
