#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/child/child_server.h"
#include "bench/load/api_requests.h"
#include "cli/bench_options.h"
#include "cli/command.h"
#include "net/http_client_connection.h"

namespace muster {

/// The server of a run: one that is there, or our own for as long as this lives.
struct BenchServer {
  std::unique_ptr<ChildServer> own;
  HttpClientTarget target;
  std::string plain_target;  // of a plain URL, behind its path: "", "/", "?a=b"
  HttpHeaders headers;       // of every request: the key
  BenchTask task = BenchTask::Embed;
};

/// Finds the server of a URL, or starts `muster serve` with a model, without its cache, and waits
/// until each of its devices is ready or has failed.
///
/// Errors: those of HttpClientTarget::find and ChildServer; InvalidArgument (`http` without a URL,
/// a model that is known to do something else); NotFound (no such key file); that of the first load
/// where no device can load the model; ResourceExhausted where a device has waited for memory for
/// MemoryPatience::kMost.
Result<BenchServer> open_bench_server(const CommandContext& context, const BenchPlan& plan);

/// What the model and the limit of an answer are set by, for messages.
struct ModelListWords {
  std::string_view model = "--model NAME";
  std::string_view timeout = "--timeout";
};

/// The first model that a server lists for the task; empty where it lists none. Says that it asks.
///
/// seconds_most: for the answer. Its list may be 8 MiB long.
/// Errors: those of HttpClient and of fitting_model; what the server says of a key that it wants.
Result<std::string> first_listed_model(const CommandContext& context, const BenchServer& server,
                                       double seconds_most, const ModelListWords& words = {});

/// The same of an answer of GET /v1/models. A model of which nothing is said fits every task.
///
/// Errors: NotFound, with what there is, where no model is for the task. Threads: pure.
Result<std::string> fitting_model(const std::string& body, BenchTask task);

/// The texts of a run's files: lines, or a field of each record.
///
/// Errors: those of TextReader, of the first record that is broken; ResourceExhausted for more than
/// a million.
Result<std::vector<std::string>> read_bench_texts(const BenchPlan& plan);

/// What a run sends: the texts of its files, or generated ones; with `http` and no file none.
///
/// Errors: those of read_bench_texts; InvalidArgument when its files have none.
Result<std::vector<std::string>> bench_texts(const BenchPlan& plan);

/// The requests of a run, of these texts.
PreparedRequests make_bench_requests(const BenchPlan& plan, const BenchServer& server,
                                     std::span<const std::string> texts);

/// Counts the tokens of a text, without those that the tokenizer puts around it. place: the folder
/// of a model, or its tokenizer.json.
///
/// Errors: those of Tokenizer::load. Threads: what it gives is not thread-safe.
Result<std::function<std::uint64_t(std::string_view)>> token_counter(const std::string& place);

}  // namespace muster
