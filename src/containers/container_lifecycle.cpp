// When docker refuses one container of a deployment, those started before it are removed again, so
// that no half of a deployment stays behind. A container that docker started and that ends at once
// is kept, because its log is the only place that says why. Nothing is remembered between commands;
// what muster started is found by the labels that it put on.

#include "containers/container_lifecycle.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/text.h"
#include "deploy/docker_run.h"
#include "terminal/text_width.h"

namespace muster {
namespace {

// `docker run --detach` returns when the container has been started; the state may lag behind it.
constexpr int kLookCount = 50;
constexpr int kLookPauseMs = 100;

Status remove(const DockerClient& docker, const std::vector<std::string>& ids) {
  if (ids.empty()) return Done{};
  std::vector<std::string> words{"rm", "--force"};
  words.insert(words.end(), ids.begin(), ids.end());
  MUSTER_TRY(docker.ask(words));
  return Done{};
}

// Starts one container; its id, also where only creating it succeeded.
Result<std::string> start(const DockerClient& docker, const Deployment& deployment,
                          const ContainerSpec& container, std::vector<std::string>& ids) {
  auto words = MUSTER_TRY(docker_run_words(deployment, container));
  words.erase(words.begin());  // "docker"
  const auto outcome = MUSTER_TRY(docker.run(words, true));
  const auto id = std::string(trim(outcome.out));
  if (!id.empty()) ids.push_back(id);
  if (outcome.exit_code != 0) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("docker could not start {} (exit code {}); what it said is above",
                             container.name, outcome.exit_code)};
  }
  return id;
}

Status check_runs(const DockerClient& docker, const std::string& id, const std::string& name) {
  std::string state;
  for (int look = 0; look < kLookCount; ++look) {
    if (look > 0) poll(nullptr, 0, kLookPauseMs);
    state = MUSTER_TRY(docker.ask({"inspect", "--type", "container", "--format",
                                   "{{.State.Status}} {{.State.ExitCode}}", id}));
    state = std::string(trim(state));
    if (state.starts_with("running")) return Done{};
    if (state.starts_with("exited") || state.starts_with("dead")) {
      return Error{ErrorKind::Unavailable,
                   fmt::format("{0} ended at once with exit code {1}; `muster deploy logs {0}` "
                               "shows why, `muster deploy stop {0}` removes it",
                               name, state.substr(state.find(' ') + 1))};
    }
  }
  return Error{ErrorKind::Unavailable, fmt::format("{} does not start: it is {}", name, state)};
}

}  // namespace

Status start_deployment(const DockerClient& docker, const Deployment& deployment) {
  if (auto first = first_run_words(deployment); !first.empty()) {
    first.erase(first.begin());  // "docker"
    // What it prints is no result of ours. The error does without the whole command, whose
    // variables may be secrets.
    const auto outcome = MUSTER_TRY(docker.run(first, /*keeps_output=*/true));
    if (outcome.exit_code != 0) {
      return Error{ErrorKind::Unavailable,
                   fmt::format("docker could not run `{}` in {} (exit code {}); what it said is "
                               "above",
                               fmt::join(deployment.first_arguments, " "),
                               deployment.containers.front().image, outcome.exit_code)};
    }
  }
  std::vector<std::string> ids;
  for (const auto& container : deployment.containers) {
    const auto id = start(docker, deployment, container, ids);
    if (!id) {
      const auto removed = remove(docker, ids);
      if (removed) return id.error();
      return Error{id.error().kind, fmt::format("{}; and what was started is still there: {}",
                                                id.error().message, removed.error().message)};
    }
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    MUSTER_TRY(check_runs(docker, ids[i], deployment.containers[i].name));
  }
  return Done{};
}

Result<std::vector<DeployedContainer>> find_containers(const DockerClient& docker,
                                                       const std::optional<std::string>& name) {
  // Tabs separate the fields, since a status holds blanks; a line with another number of fields is
  // passed over.
  const auto format = fmt::format(
      "{{{{.ID}}}}\t{{{{.Names}}}}\t{{{{.Label \"{}\"}}}}\t{{{{.Label \"{}\"}}}}\t{{{{.Label "
      "\"{}\"}}}}\t{{{{.State}}}}\t{{{{.Status}}}}\t{{{{.Ports}}}}",
      kDeploymentLabel, kApiLabel, kModelLabel);
  const auto answer =
      MUSTER_TRY(docker.ask({"ps", "--all", "--no-trunc", "--filter",
                             fmt::format("label={}", kDeploymentLabel), "--format", format}));
  constexpr std::size_t kFieldCount = 8;
  std::vector<DeployedContainer> found;
  std::set<std::string> deployments;
  for (const auto& line : split(answer, '\n')) {
    auto fields = split(line, '\t');
    if (fields.size() != kFieldCount) continue;
    DeployedContainer container{fields[0], fields[1], fields[2], fields[3],
                                fields[4], fields[5], fields[6], fields[7]};
    deployments.insert(container.deployment);
    if (!name || *name == container.deployment || *name == container.name) {
      found.push_back(std::move(container));
    }
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  if (name && found.empty()) {
    return Error{
        ErrorKind::NotFound,
        fmt::format(
            "muster started no container of that name: {}; there is {}", *name,
            deployments.empty() ? "none" : fmt::format("{}", fmt::join(deployments, ", ")))};
  }
  return found;
}

Result<int> show_logs(const DockerClient& docker, const std::vector<DeployedContainer>& containers,
                      bool follows, const std::optional<std::string>& tail) {
  if (follows && containers.size() > 1) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("--follow shows one container: {} or another of the {}",
                             containers.front().name, containers.size())};
  }
  for (const auto& container : containers) {
    if (containers.size() > 1) fmt::print(stderr, "==> {} <==\n", printable(container.name));
    std::vector<std::string> words{"logs"};
    if (follows) words.emplace_back("--follow");
    if (tail) words.insert(words.end(), {"--tail", *tail});
    words.push_back(container.id);
    const auto outcome = MUSTER_TRY(docker.run(words, false));
    if (outcome.exit_code != 0) return outcome.exit_code;
  }
  return 0;
}

Status stop_containers(const DockerClient& docker,
                       const std::vector<DeployedContainer>& containers) {
  std::vector<std::string> words{"stop"};
  std::vector<std::string> ids;
  for (const auto& container : containers) ids.push_back(container.id);
  words.insert(words.end(), ids.begin(), ids.end());
  // Ten seconds each by docker's own default, so without the deadline of a quick command.
  const auto outcome = MUSTER_TRY(docker.run(words, true));
  if (outcome.exit_code != 0) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("docker could not stop {} (exit code {}); what it said is above",
                             containers.front().deployment, outcome.exit_code)};
  }
  return remove(docker, ids);
}

}  // namespace muster
