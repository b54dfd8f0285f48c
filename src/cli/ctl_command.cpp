// One verb is one or two requests to the administration API of a running server. `drain` and
// `restart` return when the device has reached its state, which the server reports and this command
// asks for again and again; `all` takes one device after the other, so that the rest go on serving.
// Where the wait is given up, the server goes on with what it was told.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "cli/ctl_view.h"
#include "cli/server_client.h"
#include "coordinator/decoder_workers.h"
#include "jobs/decoder_probe.h"
#include "modelfile/hub_cache.h"
#include "serving/serving_decoders.h"
#include "terminal/terminal_info.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// A device that drains may have minutes of work, one that restarts a large model to load.
constexpr auto kWaitLimit = std::chrono::minutes(15);
constexpr auto kAskPeriod = std::chrono::milliseconds(50);

std::vector<Verb> verbs() {
  return {{"status", "the devices and models of the server"},
          {"drain", "finish a device's texts and replies, and give it no more", WordKind::Device},
          {"resume", "give a drained device work again", WordKind::Device},
          {"restart", "start a device's workers anew, or with all one after the other",
           WordKind::Device},
          {"load", "serve one more model; waits for it, 25 minutes at most", WordKind::Model},
          {"unload", "serve a model no longer"}};
}

std::vector<std::string> actions() {
  std::vector<std::string> names;
  for (const auto& verb : verbs()) names.push_back(verb.name);
  return names;
}

CommandSpec ctl_spec() {
  return {.name = "ctl",
          .summary = "look after a running server: its devices and models",
          .usage = "status | drain|resume|restart DEVICE|all | load [NAME=]MODEL | unload NAME",
          .positional_least = 1,
          .positional_most = 2,
          .groups = {server_flags(),
                     {"Loading",
                      {},
                      {{"--precision", "P", "of the model that is loaded (default: the server's)"},
                       {"--kv-cache-dtype", "T", "of its cache, the same"}}},
                     {"Output", {}, {{"--json", "", "the server's own answer"}}}},
          .examples =
              "  muster ctl status\n"
              "  muster ctl drain cpu:0       # the others take its work; then: resume\n"
              "  muster ctl load chat=/models/SmolLM2.gguf\n"
              "  muster ctl restart all       # one device after the other\n",
          .verbs = verbs()};
}

// A word of the command line may be no UTF-8, which a body has to be: no name of a server's is so.
std::string body_text(const Json& body) {
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// What other schedulers call it is no misspelling of ours.
std::optional<std::string> meant_action(const std::string& action) {
  if (action == "undrain" || action == "uncordon") return "resume";
  if (action == "cordon") return "drain";
  return nearest_name(action, actions());
}

Error unknown_action(const std::string& action) {
  const auto nearest = meant_action(action);
  return {ErrorKind::InvalidArgument,
          fmt::format("muster ctl does not know {}; {}", action,
                      nearest ? fmt::format("did you mean {}?", *nearest)
                              : fmt::format("it knows {}", fmt::join(actions(), ", ")))};
}

Result<Json> read_list(ServerClient& client, const char* target, const char* name) {
  const auto body = MUSTER_TRY(client.call("GET", target));
  auto json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains(name) || !json[name].is_array()) {
    return Error{ErrorKind::Corrupt, fmt::format("the server's answer has no {}", name)};
  }
  return std::move(json[name]);
}

Result<Json> read_devices(ServerClient& client) {
  return read_list(client, "/v1/devices", "devices");
}

Result<std::string> show_status(ServerClient& client, const CommandContext& context) {
  if (context.arguments.has("--json")) {
    auto body = MUSTER_TRY(client.call("GET", "/v1/devices"));
    return body + "\n";
  }
  const auto terminal = context.terminal(STDOUT_FILENO);
  auto text = ctl_device_table(MUSTER_TRY(read_devices(client)), terminal);
  // A key that may only watch is not told of models.
  if (const auto models = read_list(client, "/v1/models", "data")) {
    text += "\n" + ctl_model_table(*models, terminal);
  }
  return text;
}

// The device once it is in the state that was asked for; one that no model is on is never ready,
// and for one that waits for memory nobody should wait: others hold it, maybe for hours.
Result<Json> wait_for(ServerClient& client, const std::string& name, const std::string& state) {
  const auto begin = std::chrono::steady_clock::now();
  std::string last;
  while (std::chrono::steady_clock::now() - begin < kWaitLimit) {
    auto devices = MUSTER_TRY(read_devices(client));
    for (auto& device : devices) {
      if (field_text(device, "name") != name) continue;
      last = field_text(device, "state");
      if (last == state || (last == "idle" && state == "ready")) return std::move(device);
      if (last == "given up") {
        return Error{ErrorKind::Unavailable,
                     fmt::format("{} is given up: {}", name, field_text(device, "reason"))};
      }
      const auto wait = last == "restarting" ? memory_wait_text(device) : std::string();
      if (!wait.empty() && state == "ready") {
        return Error{ErrorKind::Unavailable,
                     fmt::format("{}: {}; it is tried again by itself", name, wait)};
      }
    }
    std::this_thread::sleep_for(kAskPeriod);
  }
  return Error{ErrorKind::DeadlineExceeded, fmt::format("{} is still {}", name, last)};
}

// "all" is every device, one after the other, so that the others serve meanwhile.
Result<std::string> change_devices(ServerClient& client, const std::string& action,
                                   const std::string& device) {
  std::vector<std::string> names{device};
  std::string out;
  if (device == "all") {
    const auto devices = MUSTER_TRY(read_devices(client));
    names.clear();
    for (const auto& one : devices) {
      // Whoever has drained a device has a reason to: it is started by its name, or resumed.
      if (action == "restart" && field_text(one, "state") == "drained") {
        out += fmt::format("{}: drained, and stays so\n", field_text(one, "name"));
      } else {
        names.push_back(field_text(one, "name"));
      }
    }
  }
  // A restart is over when the device is ready again, as after a resume.
  const std::string state = action == "drain" ? "drained" : "ready";
  for (const auto& name : names) {
    MUSTER_TRY(client.call("POST", "/v1/admin/" + action, body_text(Json{{"device", name}})));
    out += changed_device_text(MUSTER_TRY(wait_for(client, name, state)));
  }
  return out;
}

// To nobody a server tells what lies at a path: what is most often missing is said here.
Error with_pull_hint(Error error, const std::string& model) {
  if (error.kind != ErrorKind::NotFound) return error;
  if (model.ends_with(".gguf")) {
    const bool is_whole = model.starts_with('/');
    error.message += fmt::format("; the file is looked for on the server's machine{}",
                                 is_whole ? "" : ": give its whole path");
    return error;
  }
  if (!is_hub_id(model)) return error;
  const bool is_whole = model.find('/') != std::string::npos;
  error.message +=
      fmt::format("; if its cache lacks the model: muster pull {}{}, on the server's machine",
                  is_whole ? "" : "ORG/", model);
  return error;
}

// The answer comes when a device has the model, whose precision may be measured before that, and
// the measurement may wait for other loads: 25 minutes, as `verbs` says. Behind the measurements of
// others it may come later still; the server goes on with it.
Duration load_limit() {
  return ServingDecoders::kWaitMost + DecoderProbeOptions{}.time_most +
         DecoderFleetOptions{}.load_most;
}

// A server runs in a folder of its own: what is here has to be told it from the root.
std::string from_root(const std::string& model) {
  std::error_code fault;
  const std::filesystem::path place(model);
  if (place.is_absolute() || !std::filesystem::exists(place, fault)) return model;
  const auto whole = std::filesystem::absolute(place, fault);
  if (fault) return model;
  // The folder above a link may be another one than that above its name.
  const bool climbs = model.find("..") != std::string::npos;
  return climbs ? whole.string() : whole.lexically_normal().string();
}

struct LoadWord {
  std::optional<std::string> name;
  std::string model;
};

// MODEL or NAME=MODEL. As for `muster serve`, a file whose name holds an equals sign is a file.
LoadWord load_word(const std::string& word, bool is_server_here) {
  std::error_code ignored;
  const auto equals = word.find('=');
  const bool is_file = is_server_here && std::filesystem::exists(word, ignored);
  LoadWord load{.name = std::nullopt, .model = word};
  if (equals != std::string::npos && !is_file) {
    load = {.name = word.substr(0, equals), .model = word.substr(equals + 1)};
  }
  if (is_server_here) load.model = from_root(load.model);
  return load;
}

Result<std::string> load_model(ServerClient& client, const Arguments& arguments) {
  const auto& word = arguments.positionals[1];
  const auto load = load_word(word, client.is_here);
  Json body{{"model", load.model}};
  if (load.name) body["name"] = *load.name;
  if (const auto precision = arguments.value("--precision")) body["precision"] = *precision;
  if (const auto dtype = arguments.value("--kv-cache-dtype")) body["kv_cache_dtype"] = *dtype;
  if (const auto done = client.call("POST", "/v1/models/load", body_text(body)); !done) {
    return with_pull_hint(done.error(), load.model);
  }
  return fmt::format("{}: loaded\n", word);
}

// Of the word that an action takes.
std::string_view example_of(const std::string& action) {
  if (action == "load") return "chat=/models/SmolLM2.gguf";
  if (action == "unload") return "chat";
  return "cpu:0, or all";
}

Result<int> run_ctl(const CommandContext& context) {
  const auto& words = context.arguments.positionals;
  const auto& action = words.front();
  const auto known = actions();
  if (std::find(known.begin(), known.end(), action) == known.end()) return unknown_action(action);
  const bool wants_word = action != "status";
  if (wants_word != (words.size() == 2)) {
    return Error{ErrorKind::InvalidArgument,
                 wants_word ? fmt::format("muster ctl {} needs to be told which one, such as {}",
                                          action, example_of(action))
                            : fmt::format("muster ctl {} takes no further word", action)};
  }
  for (const auto* flag : {"--precision", "--kv-cache-dtype"}) {
    if (action == "load" || !context.arguments.has(flag)) continue;
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} is of muster ctl load, not of {}", flag, action)};
  }
  auto client = MUSTER_TRY(
      ServerClient::open(context, action == "load" ? std::optional(load_limit()) : std::nullopt));
  std::string out;
  if (action == "status") {
    out = MUSTER_TRY(show_status(client, context));
  } else if (action == "load") {
    out = MUSTER_TRY(load_model(client, context.arguments));
  } else if (action == "unload") {
    const auto answer =
        MUSTER_TRY(client.call("POST", "/v1/models/unload", body_text(Json{{"model", words[1]}})));
    out = unloaded_text(words[1], Json::parse(answer, nullptr, /*allow_exceptions=*/false));
  } else {
    out = MUSTER_TRY(change_devices(client, action, words[1]));
  }
  MUSTER_TRY(context.output.append(out));
  return 0;
}

}  // namespace

Command ctl_command() { return {ctl_spec(), run_ctl}; }

}  // namespace muster
