// serving_load --url http://127.0.0.1:8000/v1/embeddings --bodies FILE --connections N --seconds S
//              (--rate R [--arrivals constant|poisson] | --closed) [--requests N]
//              [--header "Name: value"]... [--check-rows N] [--seed N] [--json OUT]
//
// Sends the bodies of FILE (one JSON body a line) in turn. With --rate the loop is open: requests
// come whether or not answers do, and latency counts from the time at which each was meant to be
// sent. With --closed each connection sends its next request when it has the answer to the last.
// Latencies in milliseconds; those of refusals (429, 503) apart from those of answers.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/cpu_time.h"
#include "load_generator.h"
#include "net/http_client.h"

namespace {

using muster::load::LoadOptions;
using muster::load::LoadResult;

constexpr int kUsage = 2;

struct Arguments {
  std::string url;
  std::string bodies;
  std::string json;
  std::vector<std::string> headers;
  bool is_closed = false;
  LoadOptions load;
};

[[noreturn]] void stop(const std::string& why) {
  fmt::print(stderr, "serving_load: {}\n", why);
  std::exit(kUsage);
}

template <typename Number>
Number number(const std::string& flag, const std::string& text) {
  Number value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value <= Number{}) {
    stop(flag + " wants a number above 0, not \"" + text + "\"");
  }
  return value;
}

void take(Arguments& arguments, const std::string& flag, const std::string& value) {
  auto& load = arguments.load;
  if (flag == "--url") {
    arguments.url = value;
  } else if (flag == "--bodies") {
    arguments.bodies = value;
  } else if (flag == "--json") {
    arguments.json = value;
  } else if (flag == "--header") {
    arguments.headers.push_back(value);
  } else if (flag == "--rate") {
    load.rate = number<double>(flag, value);
  } else if (flag == "--arrivals") {
    if (value != "constant" && value != "poisson") stop("--arrivals is constant or poisson");
    load.is_poisson = value == "poisson";
  } else if (flag == "--connections") {
    load.connections = number<std::uint32_t>(flag, value);
  } else if (flag == "--seconds") {
    load.seconds = number<double>(flag, value);
  } else if (flag == "--requests") {
    load.requests_most = number<std::uint64_t>(flag, value);
  } else if (flag == "--check-rows") {
    load.check_rows = number<std::uint64_t>(flag, value);
  } else if (flag == "--seed") {
    load.seed = number<std::uint64_t>(flag, value);
  } else {
    stop("unknown flag " + flag);
  }
}

Arguments parse(int count, char** words) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string flag = words[i];
    if (flag == "--closed") {
      arguments.is_closed = true;
      continue;
    }
    if (i + 1 == count) stop(flag + " wants a value");
    take(arguments, flag, words[++i]);
  }
  if (arguments.url.empty() || arguments.bodies.empty()) stop("--url and --bodies are needed");
  if (arguments.is_closed == (arguments.load.rate > 0))
    stop("one of --rate and --closed is needed");
  return arguments;
}

void prepare(Arguments& arguments) {
  const auto url = muster::parse_http_url(arguments.url);
  if (!url) stop(url.error().message);
  if (url->is_tls) stop("this sends plain HTTP");
  arguments.load.host = url->host;
  arguments.load.port = url->port;
  std::string head =
      fmt::format("POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n",
                  url->path.empty() ? "/" : url->path, url->address());
  for (const auto& header : arguments.headers) head += header + "\r\n";
  std::ifstream file(arguments.bodies);
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    arguments.load.requests.push_back(
        fmt::format("{}Content-Length: {}\r\n\r\n{}", head, line.size(), line));
  }
  if (arguments.load.requests.empty()) stop(arguments.bodies + ": no body in it");
}

// Nearest rank; null without values.
nlohmann::json percentile(const std::vector<float>& sorted, double share) {
  if (sorted.empty()) return nullptr;
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

void add_percentiles(nlohmann::json& report, const std::string& prefix, std::vector<float> values) {
  std::ranges::sort(values);
  report[prefix + "p50_ms"] = percentile(values, 0.5);
  report[prefix + "p90_ms"] = percentile(values, 0.9);
  report[prefix + "p99_ms"] = percentile(values, 0.99);
  report[prefix + "p999_ms"] = percentile(values, 0.999);
  report[prefix + "max_ms"] = percentile(values, 1);
}

nlohmann::json report_of(const LoadResult& result) {
  nlohmann::json report;
  report["statuses"] = nlohmann::json::object();
  for (const auto& [status, count] : result.statuses) {
    report["statuses"][std::to_string(status)] = count;
  }
  // Answers while it was being sent: what came during the wait afterwards is no throughput.
  std::uint64_t ok = 0;
  const auto whole = static_cast<std::size_t>(std::floor(result.sending_seconds));
  for (std::size_t i = 0; i < std::min(whole, result.timeline.size()); ++i) {
    ok += result.timeline[i].ok;
  }
  const bool is_short = whole == 0;
  report["ok"] = result.ok_ms.size();
  report["ok_per_second"] =
      is_short ? static_cast<double>(result.ok_ms.size()) / std::max(result.sending_seconds, 1e-9)
               : static_cast<double>(ok) / static_cast<double>(whole);
  report["sent"] = result.sent;
  report["sent_per_second"] =
      static_cast<double>(result.sent) / std::max(result.sending_seconds, 1e-9);
  report["seconds"] = result.sending_seconds;
  add_percentiles(report, "", result.ok_ms);
  report["refused"] = result.refused_ms.size();
  report["refused_with_retry_after"] = result.refused_with_retry_after;
  add_percentiles(report, "refused_", result.refused_ms);
  add_percentiles(report, "lag_", result.lag_ms);
  report["broken"] = result.broken;
  report["unanswered"] = result.unanswered;
  report["wrong_rows"] = result.wrong_rows;
  report["reconnects"] = result.reconnects;
  report["own_cpu_seconds"] = muster::process_cpu_seconds();
  auto& timeline = report["timeline"] = nlohmann::json::array();
  for (const auto& second : result.timeline) {
    timeline.push_back({{"ok", second.ok}, {"refused", second.refused}, {"other", second.other}});
  }
  return report;
}

}  // namespace

int main(int count, char** words) {
  auto arguments = parse(count, words);
  prepare(arguments);
  auto result = muster::load::LoadGenerator(arguments.load).run();
  if (!result) stop(result.error().message);
  const auto report = report_of(*result);
  if (!arguments.json.empty()) std::ofstream(arguments.json) << report.dump(1) << "\n";
  auto line = report;
  line.erase("timeline");
  fmt::print("{}\n", line.dump());
  return 0;
}
