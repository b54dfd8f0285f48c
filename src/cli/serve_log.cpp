// The lines of a server's start answer what an operator would ask first: which models, on which
// devices, who may come in, and a request to try. A server that anyone on the network may use is a
// warning. Later lines tell changes of state and not states, so a quiet log means that nothing has
// changed.

#include "cli/serve_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/build_info.h"
#include "cli/shell_words.h"

namespace muster {
namespace {

std::string in_brackets(const std::string& host) {
  return host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
}

// The whole block 127.0.0.0/8 is loopback. Source: RFC 1122, section 3.2.1.3.
bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Where a client of this machine comes in.
// An address that means "all" can be listened on and not be connected to everywhere.
std::string client_host(const std::string& host) {
  if (host == "0.0.0.0" || host.empty() || host == "*") return "127.0.0.1";
  return host == "::" ? "[::1]" : in_brackets(host);
}

std::string model_line(const ServedModelStatus& model) {
  // An equality class begins with the hash of the model's files.
  constexpr std::size_t kShownOfHash = 16;
  const auto hash = model.equality_class.substr(0, model.equality_class.find(' '));
  const bool embeds = model.task == ModelTask::Embed;
  return fmt::format(
      "model {}: {}, at most {} tokens, {}{}, files {}, from {}", model.name,
      embeds ? fmt::format("vectors of {}", model.dim)
             : fmt::format("reranks, {} score(s) a text", model.dim),
      model.length_max, precision_name(model.precision),
      model.precision_reason.empty() ? "" : fmt::format(" ({})", model.precision_reason),
      hash.substr(0, kShownOfHash), model.path);
}

std::string decoder_line(const ServedDecoderStatus& model) {
  const bool has_named_cache = model.kv_cache_dtype != KvCacheDtype::Auto;
  return fmt::format(
      "model {}: generates, prompt and reply at most {} tokens, {}{}{}{}, from {}", model.name,
      model.length_max,
      model.is_precision_known ? decoder_precision_name(model.precision) : "precision auto",
      model.precision_reason.empty() ? "" : fmt::format(" ({})", model.precision_reason),
      has_named_cache
          ? fmt::format(", keys and values in {}", kv_cache_dtype_name(model.kv_cache_dtype))
          : "",
      model.has_chat_template ? "" : ", without a chat template", model.path);
}

// The body of a request that the first model answers, and its route.
std::pair<std::string_view, nlohmann::ordered_json> sample_body(const ServeFacts& facts) {
  using Json = nlohmann::ordered_json;
  if (facts.models.empty()) {
    const auto& model = facts.decoders.front();
    if (!model.has_chat_template) {
      return {"completions", Json{{"model", model.name}, {"prompt", "Once upon a time"}}};
    }
    const Json turn{{"role", "user"}, {"content", "Hello!"}};
    return {"chat/completions", Json{{"model", model.name}, {"messages", Json::array({turn})}}};
  }
  const auto& model = facts.models.front();
  if (model.task == ModelTask::Embed) {
    return {"embeddings", Json{{"model", model.name}, {"input", "a text"}}};
  }
  return {"rerank", Json{{"model", model.name},
                         {"query", "a question"},
                         {"documents", Json::array({"one text", "another"})}}};
}

std::string devices_line(const std::vector<Device>& devices) {
  std::string text = "devices: ";
  for (const auto& device : devices) {
    text += fmt::format("{}{}", &device == &devices.front() ? "" : ", ", device.name());
    if (!device.model.empty()) text += fmt::format(" ({})", device.model);
  }
  return text;
}

std::string cache_line(const ServeOptions& options) {
  const auto& cache = options.cache;
  if (cache.size_most == 0 || cache.entries_most == 0) return "cache: off";
  constexpr double kMiB = 1 << 20;
  auto text = fmt::format("cache: {:.0f} MiB, at most {} vectors",
                          static_cast<double>(cache.size_most) / kMiB, cache.entries_most);
  if (cache.ttl) text += fmt::format(", each for {:.0f} s", seconds(*cache.ttl));
  text += cache.file.empty() ? ", in memory alone" : fmt::format(", in {}", cache.file.string());
  if (!options.keys_file.empty() || !options.api_key.empty()) {
    text += options.is_cache_shared ? ", shared by all keys" : ", each key its own";
  }
  return text;
}

std::string port_text(const HttpServerOptions& http, std::uint16_t port) {
  return fmt::format("{}:{}", in_brackets(http.listen.host), port);
}

// Where clients come in, apart from what they speak there.
std::string places_text(const HttpServerOptions& http, std::uint16_t port) {
  std::vector<std::string> places;
  if (http.listens_on_port) places.push_back(port_text(http, port));
  if (http.unix_socket) places.push_back(http.unix_socket->path);
  return fmt::format("{}", fmt::join(places, " or "));
}

// Nobody is asked for one who comes through the file system.
std::string without_certificate(const HttpServerOptions& http) {
  if (!http.unix_socket) return {};
  return fmt::format(", and who may write {} (mode {:04o}) without one", http.unix_socket->path,
                     http.unix_socket->mode);
}

SaidLine access_line(const ServeFacts& facts) {
  const auto& http = facts.options.http;
  if (!facts.options.api_key.empty()) return {.text = "keys: one, which may do everything"};
  if (facts.key_count) {
    return {.text =
                fmt::format("keys: {} in {}", *facts.key_count, facts.options.keys_file.string())};
  }
  const auto where = places_text(http, facts.port);
  if (!http.listens_on_port) {
    return {.text =
                fmt::format("no keys: who may write {} (mode {:04o}) may ask, and this user and "
                            "root may change settings",
                            where, http.unix_socket->mode)};
  }
  if (http.tls && !http.tls->client_ca_file.empty()) {
    return {.text = fmt::format("no keys: anyone who reaches {} with a certificate that {} has "
                                "signed may ask{}",
                                port_text(http, facts.port), http.tls->client_ca_file.string(),
                                without_certificate(http))};
  }
  if (is_loopback(http.listen.host)) {
    return {.text = fmt::format("no keys: anyone who reaches {} may ask, and any user of this "
                                "machine may change settings",
                                where)};
  }
  return {.level = LogLevel::Warning,
          .text = fmt::format("no keys: anyone who reaches {} may ask; with --keys-file only "
                              "clients with a key are let in (muster keys new NAME --file FILE)",
                              where)};
}

LogLevel level_of(const GroupStatus& device) {
  const auto state = device.state;
  const bool is_trouble = state == GroupState::Quarantined || state == GroupState::GivenUp ||
                          (state == GroupState::Restarting && !device.is_asked_for);
  return is_trouble ? LogLevel::Warning : LogLevel::Info;
}

// "was", or nothing when it is new; and remembers what it is.
std::string before(std::map<std::string, std::string>& known, const std::string& name,
                   std::string_view state) {
  auto& now = known[name];
  auto was = now.empty() ? std::string() : fmt::format(" (was {})", now);
  now = state;
  return was;
}

}  // namespace

// Built for this very server (TLS, socket, keys), so that it works when it is pasted. Secrets stand
// in it as variables.
std::string sample_request(const ServeFacts& facts) {
  if (facts.models.empty() && facts.decoders.empty()) return {};
  const auto& http = facts.options.http;
  const auto [route, body] = sample_body(facts);
  const auto base = http.listens_on_port ? fmt::format("{}://{}:{}", http.tls ? "https" : "http",
                                                       client_host(http.listen.host), facts.port)
                                         : std::string("http://localhost");
  std::vector<std::string> words{"curl", "-s"};
  if (!http.listens_on_port) {
    words.insert(words.end(), {"--unix-socket", http.unix_socket->path});
  }
  words.push_back(fmt::format("{}/v1/{}", base, route));
  const bool has_tls = http.tls && http.listens_on_port;
  if (has_tls) words.insert(words.end(), {"--cacert", http.tls->certificate_file.string()});
  words.insert(words.end(), {"-H", "Content-Type: application/json", "-d", body.dump()});
  auto line = join_shell_words(words);
  // Double quotes, so that the shell puts the client's own in.
  if (has_tls && !http.tls->client_ca_file.empty()) {
    line += " --cert \"$CLIENT_CERT\" --key \"$CLIENT_KEY\"";
  }
  if (facts.key_count) line += " -H \"Authorization: Bearer $KEY\"";
  return line;
}

std::string listening_line(const ServeFacts& facts) {
  const auto& http = facts.options.http;
  std::vector<std::string> places;
  if (http.listens_on_port) {
    places.push_back(fmt::format("{}://{}:{}", http.tls ? "https" : "http",
                                 in_brackets(http.listen.host), facts.port));
  }
  if (http.unix_socket) places.push_back("unix:" + http.unix_socket->path);
  return fmt::format("listening on {}", fmt::join(places, " and "));
}

std::vector<SaidLine> start_lines(const ServeFacts& facts) {
  std::vector<SaidLine> lines{{.text = fmt::format("muster {}", build_name())}};
  for (const auto& model : facts.models) lines.push_back({.text = model_line(model)});
  for (const auto& model : facts.decoders) lines.push_back({.text = decoder_line(model)});
  lines.push_back({.text = devices_line(facts.options.devices)});
  if (const auto& lost = facts.options.lost_gpus; !lost.empty()) {
    lines.push_back({.level = LogLevel::Warning, .text = lost});
  }
  lines.push_back({.text = cache_line(facts.options)});
  lines.push_back(access_line(facts));
  lines.push_back({.text = listening_line(facts)});
  if (const auto sample = sample_request(facts); !sample.empty()) {
    lines.push_back({.text = fmt::format("to try it: {}", sample)});
  }
  return lines;
}

std::vector<SaidLine> StateWatch::changes(const std::vector<GroupStatus>& devices,
                                          const std::vector<ServedModelStatus>& models) {
  std::vector<SaidLine> lines;
  for (const auto& device : devices) {
    const auto state = group_state_name(device.state);
    if (devices_[device.name] == state) continue;
    const auto was = before(devices_, device.name, state);
    lines.push_back({.level = level_of(device),
                     .text = fmt::format("device {}: {}{}{}", device.name, state, was,
                                         device.reason.empty() ? "" : ": " + device.reason)});
  }
  // A model that is no longer listed was unloaded; devices never leave the list.
  std::map<std::string, std::string> still;
  for (const auto& model : models) {
    const auto state = model_state_name(model.state);
    if (models_[model.name] != state) {
      const auto was = before(models_, model.name, state);
      lines.push_back(
          {.level = model.state == ModelState::Failed ? LogLevel::Error : LogLevel::Info,
           .text = fmt::format("model {}: {}{}{}", model.name, state, was,
                               model.reason.empty() ? "" : ": " + model.reason)});
    }
    still[model.name] = state;
  }
  for (const auto& [name, state] : models_) {
    if (!still.contains(name)) lines.push_back({.text = fmt::format("model {}: unloaded", name)});
  }
  models_ = std::move(still);
  return lines;
}

}  // namespace muster
