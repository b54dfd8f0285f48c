// Four verbs over the docker client. `container` plans first and runs then, and --dry-run, compose
// and kubernetes print from the same plan, so that what is printed is what would run. The other
// verbs know deployments by docker's own labels and keep no state. Notes go to standard error:
// standard output may be piped into a file or another program.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/deploy_options.h"
#include "cli/find_machine.h"
#include "cli/shell_words.h"
#include "containers/container_lifecycle.h"
#include "containers/docker_client.h"
#include "deploy/compose_text.h"
#include "deploy/docker_run.h"
#include "deploy/kubernetes_text.h"
#include "deploy/server_api.h"
#include "hw/device_names.h"
#include "terminal/table.h"
#include "terminal/terminal_info.h"
#include "terminal/text_width.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// Words that may follow one of these flags: "--devices cuda:0 cuda:1", "--env A=1 B=2".
bool is_device(std::string_view word) { return is_device_name_form(word) || word == "none"; }

bool is_variable(std::string_view word) {
  const auto equals = word.find('=');
  return equals != word.npos && equals > 0;
}

// Apart from the spec, because `check_flags` asks which flags belong to the verb `container`.
const std::vector<RunFlag>& container_flags() {
  static const std::vector<RunFlag> flags{
      {.name = "--api",
       .value_name = "API",
       .help = "the server in the container: tgi, tei, vllm or muster",
       .choices = server_api_names()},
      {"--model", "MODEL", "a folder, a name on the hub, or with muster a .gguf file"},
      {"--devices", "LIST",
       "cuda:0,cuda:2, a UUID, MIG-…, nvidia.com/gpu=0, rocm:0, /dev/dri/renderD128 or none; the "
       "server numbers them in this order",
       "", true, is_device},
      {"--auto-select", "", "the fewest GPUs that hold the model's weights"},
      {"--plan", "FILE", "devices and split of a plan that `muster plan` wrote"},
      {"--image", "IMAGE", "instead of the one published for the API and the devices"},
      {"--host", "ADDRESS",
       "where the port is opened: 0.0.0.0 for all the world (default: "
       "127.0.0.1)"},
      {"--port", "N", "on this machine, and replicas take the ports after it (default: 8080)"},
      {"--container-name", "NAME", "what it is called (default: from API and model)"},
      {"--env", "NAME=VALUE", "a variable inside, or several; may be repeated", "", true,
       is_variable},
      {"--volume", "SOURCE:/PATH[:ro]", "a folder or volume inside; may be repeated", "", true},
      {"--shm-size", "SIZE",
       "of /dev/shm, such as 1g (default: what the server's documents "
       "say)"},
      {"--detect-only", "", "show what containers can use here, and end"},
      {"--dry-run", "", "print exactly what would run, and run nothing"},
      {.name = "--format",
       .value_name = "FORM",
       .help = "docker; or text for compose or kubernetes, which runs nothing",
       .choices = {"docker", "compose", "kubernetes"}},
  };
  return flags;
}

CommandSpec deploy_spec() {
  return {
      .name = "deploy",
      .summary = "serve a model from a container on chosen devices",
      .usage =
          "container --api API --model MODEL --devices LIST|--plan FILE [-- WORDS] | status [NAME] "
          "| logs NAME "
          "| stop NAME",
      .positional_least = 1,
      .positional_most = 256,
      .groups = {{"A container", {}, container_flags()},
                 {"Its log",
                  {},
                  {{"--follow", "", "go on showing it"}, {"--tail", "N", "only the last lines"}}},
                 {"Output", {}, {{"--json", "", "what was done or found as a JSON object"}}}},
      .examples =
          "  muster deploy container --detect-only\n"
          "  muster deploy container --api tgi --model facebook/opt-1.3b \\\n"
          "      --devices cuda:0 cuda:1\n"
          "  muster deploy container --api tei --model BAAI/bge-m3 --devices none --dry-run\n"
          "  muster deploy container --api muster --model BAAI/bge-m3 --devices cuda:0 \\\n"
          "      --dry-run\n"
          "  muster deploy container --api vllm --model facebook/opt-1.3b \\\n"
          "      --devices 2xcuda --format kubernetes > deployment.yaml\n"
          "  muster deploy status\n"
          "  muster deploy stop muster-tgi-opt-1-3b\n",
      .verbs = {{"container", "start containers, or show what would start"},
                {"status", "the containers that muster has started"},
                {"logs", "what one of them says"},
                {"stop", "stop and remove one of them"}},
  };
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void show_notes(const std::vector<std::string>& notes) {
  for (const auto& note : notes) fmt::print(stderr, "note: {}\n", printable(note));
}

std::string url_of(const Deployment& deployment, const ContainerSpec& container) {
  // A server that listens on every address is asked on this one.
  const bool is_all = deployment.host == "0.0.0.0" || deployment.host == "::";
  const bool is_ipv6 = deployment.host.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}", is_ipv6 ? "[" : "",
                     !is_all   ? deployment.host
                     : is_ipv6 ? "::1"
                               : "127.0.0.1",
                     is_ipv6 ? "]" : "", container.host_port);
}

// Quoted for a shell: the line is there to be copied, and a model's name may hold anything.
std::string curl_line(const Deployment& deployment, const ContainerSpec& container) {
  const auto query = example_query(deployment.api, deployment.model);
  return join_shell_words(
      std::vector<std::string>{"curl", url_of(deployment, container) + query.path, "-H",
                               "Content-Type: application/json", "-d", query.body});
}

Result<Json> deployment_json(const Deployment& deployment, const std::vector<std::string>& notes) {
  auto containers = Json::array();
  for (const auto& container : deployment.containers) {
    auto devices = Json::array();
    for (const auto& device : container.devices) devices.push_back(device.id);
    containers.push_back({{"name", container.name},
                          {"image", container.image},
                          {"devices", std::move(devices)},
                          {"url", url_of(deployment, container)},
                          {"command", MUSTER_TRY(docker_run_words(deployment, container))}});
  }
  return Json{{"name", deployment.name},
              {"api", server_api_name(deployment.api)},
              {"model", deployment.model},
              {"tensor_parallel", deployment.shards.tensor},
              {"pipeline_parallel", deployment.shards.pipeline},
              {"first", first_run_words(deployment)},
              {"containers", std::move(containers)},
              {"notes", notes}};
}

Result<std::string> text_of(const Deployment& deployment, DeployFormat format) {
  if (format == DeployFormat::Compose) return compose_text(deployment);
  if (format == DeployFormat::Kubernetes) return kubernetes_text(deployment);
  std::string lines;
  const auto first = first_run_words(deployment);
  if (!first.empty()) lines += join_shell_words(first) + "\n";
  for (const auto& container : deployment.containers) {
    lines += join_shell_words(MUSTER_TRY(docker_run_words(deployment, container))) + "\n";
  }
  return lines;
}

// The docker client is looked for only when something is to run: a dry run works on a machine
// without docker.
Result<int> run_container(const CommandContext& context, const ContainerHost& host) {
  const auto options = MUSTER_TRY(deploy_options(context.arguments, host));
  const auto deployment = MUSTER_TRY(plan_deployment(options.request));
  auto notes = options.notes;
  notes.insert(notes.end(), deployment.notes.begin(), deployment.notes.end());
  const bool wants_json = context.arguments.has("--json");
  if (wants_json && options.format != DeployFormat::Docker) {
    return Error{ErrorKind::InvalidArgument, "--json and --format cannot be combined"};
  }
  if (!options.is_dry_run) {
    const auto docker = MUSTER_TRY(DockerClient::find());
    show_notes(notes);
    MUSTER_TRY(start_deployment(docker, deployment));
  } else if (!wants_json) {
    show_notes(notes);
  }
  if (wants_json) {
    const auto json = MUSTER_TRY(deployment_json(deployment, notes));
    MUSTER_TRY(context.output.append(dump(json)));
    return 0;
  }
  if (options.is_dry_run) {
    const auto text = MUSTER_TRY(text_of(deployment, options.format));
    MUSTER_TRY(context.output.append(text));
    return 0;
  }
  for (const auto& container : deployment.containers) {
    MUSTER_TRY(context.output.append(fmt::format("{} runs: {}\n  {}\n", container.name,
                                                 url_of(deployment, container),
                                                 curl_line(deployment, container))));
  }
  MUSTER_TRY(context.output.append(fmt::format(
      "It answers when the model is loaded: muster deploy logs {0}; muster deploy stop {0}\n",
      deployment.name)));
  return 0;
}

struct DetectedDevice {
  std::string name;
  std::string model;
  std::string memory;
  std::string free_memory;
  std::string container_name;  // what the docker client is told
  bool is_lost = false;
};

std::string memory_text(const std::optional<std::uint64_t>& bytes) {
  return bytes ? human_bytes(*bytes) : "-";
}

// The kernel's topology gives no name and no memory of an AMD GPU, so a dash stands there.
std::vector<DetectedDevice> detected(const ContainerHost& host) {
  std::vector<DetectedDevice> rows;
  for (const auto& gpu : host.inventory.gpus) {
    const bool is_lost = !gpu.lost_reason.empty();
    rows.push_back({gpu.name(), gpu.model.empty() ? "-" : gpu.model,
                    memory_text(gpu.memory_total_bytes), memory_text(gpu.memory_free_bytes),
                    is_lost ? "-" : container_device(gpu).id, is_lost});
  }
  for (std::size_t i = 0; i < host.rocm.gpus.size(); ++i) {
    rows.push_back(
        {fmt::format("rocm:{}", i), "AMD GPU", "-", "-", host.rocm.gpus[i].render_file, false});
  }
  return rows;
}

// No GPU and no docker are answers here and not errors: this is what somebody runs to find out.
Result<int> run_detect(const CommandContext& context, const ContainerHost& host) {
  const auto docker = DockerClient::find();
  const auto rows = detected(host);
  if (context.arguments.has("--json")) {
    auto devices = Json::array();
    for (const auto& row : rows) {
      devices.push_back(
          {{"name", row.name},
           {"model", row.model},
           {"container_name", row.is_lost ? Json(nullptr) : Json(row.container_name)}});
    }
    MUSTER_TRY(context.output.append(
        dump({{"devices", std::move(devices)},
              {"docker_client", docker ? Json(docker->program()) : Json(nullptr)}})));
    return 0;
  }
  Table table({{"device"},
               {"model", Align::Left, true},
               {"memory", Align::Right},
               {.title = "free", .align = Align::Right, .leaves = 1},
               {"in a container"}});
  for (const auto& row : rows) {
    table.add_row({row.name, row.model, row.memory, row.free_memory, row.container_name});
  }
  const auto terminal = context.terminal(STDOUT_FILENO);
  auto text =
      rows.empty() ? std::string("no GPU\n") : table.render(terminal.width, terminal.has_color);
  if (host.inventory.gpu_absent_reason) {
    text += fmt::format("NVIDIA: {}\n", *host.inventory.gpu_absent_reason);
  }
  const auto lost = lost_gpus_text(host.inventory);
  if (!lost.empty()) text += fmt::format("NVIDIA: {}\n", lost);
  if (host.rocm.gpus.empty()) text += "AMD: no driver (/sys/class/kfd)\n";
  text += docker ? fmt::format("docker client: {}\n", docker->program())
                 : fmt::format("docker client: {}\n", docker.error().message);
  MUSTER_TRY(context.output.append(text));
  return 0;
}

Result<int> run_status(const CommandContext& context, const std::vector<DeployedContainer>& found) {
  if (context.arguments.has("--json")) {
    auto containers = Json::array();
    for (const auto& container : found) {
      containers.push_back({{"name", container.name},
                            {"deployment", container.deployment},
                            {"api", container.api},
                            {"model", container.model},
                            {"state", container.state},
                            {"status", container.status},
                            {"address", container.address}});
    }
    MUSTER_TRY(context.output.append(dump({{"containers", std::move(containers)}})));
    return 0;
  }
  if (found.empty()) {
    MUSTER_TRY(context.output.append("muster started no container that is still there\n"));
    return 0;
  }
  Table table({{"container"},
               {"API"},
               {.title = "model", .leaves = 1, .goes_below = true},
               {"status"},
               {.title = "address", .leaves = 2, .goes_below = true}});
  for (const auto& container : found) {
    table.add_row(
        {container.name, container.api, container.model, container.status, container.address});
  }
  const auto terminal = context.terminal(STDOUT_FILENO);
  MUSTER_TRY(context.output.append(table.render(terminal.width, terminal.has_color)));
  return 0;
}

Result<int> run_stop(const CommandContext& context, const DockerClient& docker,
                     const std::vector<DeployedContainer>& found) {
  MUSTER_TRY(stop_containers(docker, found));
  for (const auto& container : found) {
    MUSTER_TRY(context.output.append(fmt::format("{} is stopped and removed\n", container.name)));
  }
  return 0;
}

// A flag that the verb does not read is an error, as an unknown one is.
Status check_flags(const Arguments& arguments, const std::string& verb) {
  std::vector<std::string> given;
  for (const auto& [name, value] : arguments.flags) given.push_back(name);
  for (const auto& [name, values] : arguments.repeated) given.push_back(name);
  for (const auto& name : given) {
    const auto& flags = container_flags();
    const bool is_containers = std::any_of(flags.begin(), flags.end(),
                                           [&](const RunFlag& flag) { return flag.name == name; });
    const bool is_logs = name == "--follow" || name == "--tail";
    const auto common = common_flags();
    const bool is_common = std::any_of(common.begin(), common.end(),
                                       [&](const RunFlag& flag) { return flag.name == name; });
    const bool is_read = is_containers ? verb == "container"
                         : is_logs     ? verb == "logs"
                                       : is_common || verb == "container" || verb == "status";
    if (!is_read) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("muster deploy {} does not take {}", verb, name)};
    }
  }
  return Done{};
}

// The verbs are few enough that all of them fit into the message.
Error unknown_verb(const std::string& verb) {
  const auto nearest =
      nearest_name(verb, std::vector<std::string>{"container", "status", "logs", "stop"});
  return Error{ErrorKind::InvalidArgument,
               fmt::format("muster deploy cannot \"{}\"; {}", verb,
                           nearest ? fmt::format("did you mean {}?", *nearest)
                                   : "it knows container, status, logs and stop")};
}

// `status` may name none and means all then; stopping or showing all by leaving out a word would be
// a trap.
Result<int> run_on_containers(const CommandContext& context, const std::string& verb) {
  const auto& words = context.arguments.positionals;
  if (words.size() > 2) {
    return Error{ErrorKind::InvalidArgument, fmt::format("one word too many: \"{}\"", words[2])};
  }
  if (words.size() < 2 && verb != "status") {
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("which one? `muster deploy status` lists them: muster deploy {} NAME", verb)};
  }
  if (const auto tail = context.arguments.value("--tail")) {
    if (tail->empty() || tail->find_first_not_of("0123456789") != std::string::npos) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("--tail must be a whole number: \"{}\"", *tail)};
    }
  }
  const auto docker = MUSTER_TRY(DockerClient::find());
  const auto name = words.size() == 2 ? std::optional(words[1]) : std::nullopt;
  const auto found = MUSTER_TRY(find_containers(docker, name));
  if (verb == "status") return run_status(context, found);
  if (verb == "stop") return run_stop(context, docker, found);
  return show_logs(docker, found, context.arguments.has("--follow"),
                   context.arguments.value("--tail"));
}

// False for `--devices none` and for CPUs, so that the driver need not start.
bool may_need_gpus(const Arguments& arguments) {
  const auto words = arguments.values("--devices");
  return words.empty() || arguments.has("--detect-only") ||
         std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word != "none" && may_name_gpus(word); });
}

Result<int> run_deploy(const CommandContext& context) {
  const auto& verb = context.arguments.positionals.front();
  if (verb != "container" && verb != "status" && verb != "logs" && verb != "stop") {
    return unknown_verb(verb);
  }
  MUSTER_TRY(check_flags(context.arguments, verb));
  if (verb != "container") return run_on_containers(context, verb);
  ContainerHost host;
  // Docker hands GPUs out whatever CUDA_VISIBLE_DEVICES hides here.
  host.inventory = MUSTER_TRY(find_machine(context.config, context.clock,
                                           may_need_gpus(context.arguments), ToldLosses::All))
                       .inventory;
  host.rocm = find_rocm_gpus(context.config.text(SettingId::SysfsRoot).value_or("/"));
  return context.arguments.has("--detect-only") ? run_detect(context, host)
                                                : run_container(context, host);
}

}  // namespace

Command deploy_command() { return {deploy_spec(), run_deploy}; }

}  // namespace muster
