// What is measured, and with what: a server that runs or one of our own, and the requests for it. A
// server of our own is a child process with a port that the kernel chooses and without its caches,
// so that the model is measured and not the memory of earlier answers. What a muster.yaml or the
// environment says of another server's doors, keys and files does not reach it. Requests are
// prepared as bytes before the run: nothing that takes time happens between two of them.
#include "cli/bench_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/text.h"
#include "bench/child/cancel_watch.h"
#include "cli/bench_measurement.h"
#include "cli/interrupt.h"
#include "cli/server_client.h"
#include "cli/sweep/server_account.h"
#include "cli/sweep/sweep_facts.h"
#include "dataset/text_reader.h"
#include "jobs/decoder_source.h"
#include "modelfile/hub_cache.h"
#include "net/http_client.h"
#include "tokenizer/tokenizer.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kTextsMost = 1'000'000;           // of files: they are kept as requests
constexpr auto kStartLimit = std::chrono::minutes(5);   // a large model is read from a slow disk
constexpr std::uint64_t kModelListBytesMost = 8 << 20;  // some ten thousand models

bool is_cancelled() { return interrupt_signal() != 0; }

// The requests say for themselves what their bodies are.
HttpHeaders headers_of(const ServerAccess& access) {
  HttpHeaders headers;
  for (const auto& header : access.headers) {
    if (header.first != "Content-Type") headers.push_back(header);
  }
  return headers;
}

Result<BenchServer> find_server(const CommandContext& context, const BenchPlan& plan) {
  const auto access = MUSTER_TRY(server_access(context));
  BenchServer server;
  server.task = plan.task;
  auto url = plan.subject;
  if (plan.task == BenchTask::Http) {
    const auto question = std::min(url.find('?'), url.size());
    server.plain_target = url.substr(question);
    url.resize(question);
  } else if (url.ends_with("/v1") || url.ends_with("/v1/")) {
    // OpenAI's clients are given the address with it.
    url.resize(url.rfind("/v1"));
  }
  server.target = MUSTER_TRY(HttpClientTarget::find(url, access.http.tls));
  if (plan.task == BenchTask::Http && server.target.url.path.empty()) {
    server.plain_target.insert(0, "/");
  }
  server.headers = headers_of(access);
  return server;
}

// A server ends a measurement by itself, after five minutes: its load has a limit of its own.
Status wait_until_measured(const ChildServer& server) {
  constexpr auto kMeasureLimit = std::chrono::minutes(6);
  const auto has_measured = [](const HttpAnswer& answer) -> Result<bool> {
    return !read_server_account("", answer.body).is_measuring;
  };
  return server.wait_for_answer("/v1/devices", has_measured, kMeasureLimit, is_cancelled);
}

// A server whose model no device can load runs on, for an operator to mend: it is not waited for.
Status wait_until_loaded(const ChildServer& server, const Clock& clock, MemoryPatience& patience) {
  const auto has_loaded = [&](const HttpAnswer& answer) -> Result<bool> {
    const auto account = read_server_account("", answer.body);
    if (account.load_failure) return *account.load_failure;
    MUSTER_TRY(patience.look(account, clock.now()));
    return account.is_ready;
  };
  return server.wait_for_answer("/v1/devices", has_loaded, kStartLimit, is_cancelled);
}

// A server is ready with its first device. Requests that were sent then would measure fewer devices
// than were asked for, until the others have come.
Status wait_for_devices(const ChildServer& server, const Clock& clock, MemoryPatience& patience) {
  bool is_told = false;
  const auto have_all_come = [&](const HttpAnswer& answer) -> Result<bool> {
    const auto account = read_server_account("", answer.body);
    MUSTER_TRY(patience.look(account, clock.now()));
    const auto& coming = account.coming;
    if (!coming.empty() && !std::exchange(is_told, true)) {
      say_bench_step(fmt::format("waiting for {}", fmt::join(coming, ", ")));
    }
    return coming.empty();
  };
  return server.wait_for_answer("/v1/devices", have_all_come, kStartLimit, is_cancelled);
}

// What a model has to do for a benchmark, as /v1/models calls it.
std::string_view task_word(BenchTask task) {
  if (task == BenchTask::Rerank) return "rerank";
  return task == BenchTask::Generate ? "generate" : "embed";
}

// Loading a model takes minutes, and its server would answer 404 then. A model that is not found,
// or cannot be read, is told by the server that is to have it; but a server does not know that a
// name of the hub is to be of a model that generates.
Status check_model_task(const BenchPlan& plan) {
  const auto found = task_of_model(plan.subject);
  const bool wants_reply = plan.task == BenchTask::Generate;
  if (!found && wants_reply && is_hub_id(plan.subject)) {
    MUSTER_TRY(find_decoder_source(plan.subject));
  }
  if (!found || (*found == "generate") == wants_reply) return Done{};
  return invalid_error(
      fmt::format("muster bench {} wants a model {}, and {} {}: muster bench {} {}",
                  task_word(plan.task), wants_reply ? "that generates" : "of vectors or scores",
                  plan.subject, wants_reply ? "does not" : "generates", *found, plan.subject));
}

Result<BenchServer> start_server(const CommandContext& context, const BenchPlan& plan) {
  if (plan.task == BenchTask::Http) {
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("muster bench http wants a URL, as http://127.0.0.1:8000/health: \"{}\"",
                    plan.subject)};
  }
  MUSTER_TRY(check_model_task(plan));
  say_bench_step(fmt::format("starting a server with {}", plan.subject));
  // Without its caches, as this is to measure the model; a queue as long as the load makes it.
  std::vector<std::string> words{program_beside("muster").string(),
                                 "serve",
                                 plan.subject,
                                 "--config=/dev/null",
                                 "--listen=127.0.0.1:0",
                                 "--no-cache-enabled",
                                 "--no-prefix-cache"};
  for (auto& word : own_server_settings(context.config)) words.push_back(std::move(word));
  BenchServer server;
  server.own = MUSTER_TRY(ChildServer::start(words, kStartLimit, is_cancelled,
                                             own_server_environment(context.sources.environment)));
  MemoryPatience patience;
  MUSTER_TRY(wait_until_measured(*server.own));
  MUSTER_TRY(wait_until_loaded(*server.own, context.clock, patience));
  MUSTER_TRY(server.own->wait_until_ready("/readyz", kStartLimit, is_cancelled));
  MUSTER_TRY(wait_for_devices(*server.own, context.clock, patience));
  server.target = MUSTER_TRY(HttpClientTarget::find(server.own->url()));
  return server;  // it asks for no key
}

// Whoever names the model need not have it asked for.
Error list_error(const Error& error, double seconds_most, const ModelListWords& words) {
  if (error.kind == ErrorKind::DeadlineExceeded) {
    return {error.kind, fmt::format("{} to GET /v1/models ({} is {:g} s); with {} it is not asked",
                                    error.message, words.timeout, seconds_most, words.model)};
  }
  if (error.kind == ErrorKind::ResourceExhausted) {
    return {error.kind, fmt::format("{} to GET /v1/models; with {} it is not asked", error.message,
                                    words.model)};
  }
  return error;
}

// Other servers do not say what a model is for, or say it in words of their own.
std::string task_of(const Json& model) {
  if (!model.contains("task") || !model["task"].is_string()) return "";
  auto word = model["task"].get<std::string>();
  for (const auto task : {BenchTask::Embed, BenchTask::Rerank, BenchTask::Generate}) {
    if (word == task_word(task)) return word;
  }
  return "";
}

}  // namespace

Result<std::vector<std::string>> read_bench_texts(const BenchPlan& plan) {
  TextReaderOptions options{
      .inputs = plan.inputs, .field = plan.field, .is_field_asked_for = plan.is_field_asked_for};
  // To any URL a line is sent as it is, JSON too.
  if (plan.task == BenchTask::Http) options.format = TextFormat::Lines;
  const auto reader = MUSTER_TRY(TextReader::open(std::move(options)));
  std::vector<std::string> texts;
  TextRecord record;
  while (MUSTER_TRY(reader->next(record))) {
    if (record.fault) return *record.fault;
    if (texts.size() == kTextsMost) {
      return Error{
          ErrorKind::ResourceExhausted,
          fmt::format("{} has more than {} texts", fmt::join(plan.inputs, ", "), kTextsMost)};
    }
    texts.push_back(record.text);
  }
  return texts;
}

Result<BenchServer> open_bench_server(const CommandContext& context, const BenchPlan& plan) {
  return plan.is_url() ? find_server(context, plan) : start_server(context, plan);
}

Result<std::string> first_listed_model(const CommandContext& context, const BenchServer& server,
                                       double seconds_most, const ModelListWords& words) {
  auto access = MUSTER_TRY(server_access(context));
  const CancelWatch watch(is_cancelled);
  access.http.cancel_fd = watch.fd();
  access.http.body_bytes = kModelListBytesMost;
  access.http.answer_limit =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds_most));
  access.http.connect_limit = std::min(access.http.connect_limit, access.http.answer_limit);
  const auto& url = server.target.url;
  const auto client = MUSTER_TRY(HttpClient::open(
      fmt::format("{}://{}{}", url.is_tls ? "https" : "http", url.address(), url.path),
      access.http));
  say_bench_step(fmt::format("asking {} for its models", url.address()));
  const auto answer = client->call("GET", "/v1/models", server.headers);
  if (!answer) return list_error(answer.error(), seconds_most, words);
  if (answer->status == 401 || answer->status == 403) {
    return server_error(answer->status, answer->body);
  }
  return fitting_model(answer->body, server.task);
}

Result<std::string> fitting_model(const std::string& body, BenchTask task) {
  const auto json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("data") || !json["data"].is_array()) return std::string();
  const auto wanted = task_word(task);
  std::vector<std::string> others;
  for (const auto& model : json["data"]) {
    if (!model.is_object() || !model.contains("id") || !model["id"].is_string()) continue;
    auto name = model["id"].get<std::string>();
    const auto said = task_of(model);
    if (said.empty() || said == wanted) return name;
    others.push_back(fmt::format("{} ({})", name, said));
  }
  if (others.empty()) return std::string();
  return Error{ErrorKind::NotFound, fmt::format("the server has no model for muster bench {}: it "
                                                "serves {}",
                                                wanted, fmt::join(others, ", "))};
}

namespace {

// Where making them takes a moment, or not all requests can have one of their own.
void tell_made_texts(const BenchPlan& plan) {
  const auto count = plan.texts_wanted();
  const auto bytes = made_text_bytes(plan.prompt_words);
  constexpr std::uint64_t kTold = 64'000'000;  // a second on a slow machine
  if (count * bytes < kTold) return;
  const bool is_full = count < plan.texts_of_use();
  say_bench_step(fmt::format("making {} texts of about {}{}", with_thousands(count),
                             human_bytes(bytes),
                             is_full ? fmt::format(", {} together, which is the most: behind the "
                                                   "last they begin again, and a cache of the "
                                                   "server may answer then",
                                                   human_bytes(count * bytes))
                                     : ""));
}

}  // namespace

// A run of no request would be a run of nothing.
Result<std::vector<std::string>> bench_texts(const BenchPlan& plan) {
  if (plan.inputs.empty() && plan.task == BenchTask::Http) return std::vector<std::string>();
  if (plan.inputs.empty()) {
    tell_made_texts(plan);
    return generate_texts(plan.prompt_words, plan.texts_wanted(), plan.seed);
  }
  auto texts = MUSTER_TRY(read_bench_texts(plan));
  if (texts.empty()) {
    return Error{ErrorKind::InvalidArgument, "--input has no text: nothing can be sent"};
  }
  return texts;
}

PreparedRequests make_bench_requests(const BenchPlan& plan, const BenchServer& server,
                                     std::span<const std::string> texts) {
  if (plan.task == BenchTask::Http) {
    return prepare_plain_requests(server.target.url, server.plain_target, texts, server.headers);
  }
  auto api = plan.api;
  api.headers = server.headers;
  return prepare_requests(server.target.url, api, texts, plan.tokenizer.has_value());
}

// Counting by one tokenizer makes servers comparable that count in ways of their own.
Result<std::function<std::uint64_t(std::string_view)>> token_counter(const std::string& place) {
  std::filesystem::path file = place;
  if (std::filesystem::is_directory(file)) file /= "tokenizer.json";
  std::shared_ptr<const Tokenizer> tokenizer = MUSTER_TRY(Tokenizer::load(file));
  return std::function<std::uint64_t(std::string_view)>(
      [tokenizer, scratch = std::shared_ptr(tokenizer->make_scratch()),
       ids = std::vector<TokenId>()](std::string_view text) mutable -> std::uint64_t {
        constexpr std::uint32_t kPromptLengthMost = 1 << 20;
        ids.clear();
        const auto count = tokenizer->encode(text, kPromptLengthMost, *scratch, ids).token_count;
        // Special tokens that the tokenizer puts around a text were not written by the server.
        const auto special = tokenizer->special_token_count();
        return count > special ? count - special : 0;
      });
}

}  // namespace muster
