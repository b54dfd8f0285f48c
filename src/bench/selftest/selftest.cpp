// The parts by name, and what they share: a server whose delays are known, and trials made up of
// known service times. A stepped trial is one client that waits for each answer, so its latencies
// are the service times themselves and any error belongs to the statistics.

#include "bench/selftest/selftest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "bench/load/api_requests.h"
#include "bench/selftest/selftest_parts.h"

namespace muster {
namespace {

constexpr auto kStartLimit = std::chrono::seconds(10);
constexpr std::array<std::string_view, 8> kParts{"intervals", "compare", "warm-up", "rate",
                                                 "freeze",    "queue",   "queue-d", "queue-m"};

// Both laws, since one that never varies hides faults in the tail.
SelftestChecks both_queues(const SelftestOptions& options) {
  auto checks = MUSTER_TRY(selftest_queue(ServiceLaw::Deterministic, options));
  auto more = MUSTER_TRY(selftest_queue(ServiceLaw::Exponential, options));
  checks.insert(checks.end(), more.begin(), more.end());
  return checks;
}

}  // namespace

std::span<const std::string_view> selftest_parts() { return kParts; }

Status check_selftest_part(std::string_view part) {
  if (std::ranges::find(kParts, part) != kParts.end()) return Done{};
  const auto nearest = nearest_name(part, std::vector<std::string>(kParts.begin(), kParts.end()));
  return Error{ErrorKind::InvalidArgument,
               fmt::format("the self-test has no part {}; {}", part,
                           nearest ? fmt::format("did you mean {}?", *nearest)
                                   : fmt::format("there are {}", fmt::join(kParts, ", ")))};
}

Result<std::vector<SelftestCheck>> run_selftest(std::string_view part,
                                                const SelftestOptions& options) {
  MUSTER_TRY(check_selftest_part(part));
  if (part == "queue") return both_queues(options);
  if (part == "queue-d") return selftest_queue(ServiceLaw::Deterministic, options);
  if (part == "queue-m") return selftest_queue(ServiceLaw::Exponential, options);
  if (part == "freeze") return selftest_freeze(options);
  if (part == "rate") return selftest_rate(options);
  if (part == "intervals") return selftest_intervals(options);
  if (part == "compare") return selftest_compare(options);
  return selftest_warm_up(options);
}

Result<TrialSamples> load_null_server(const SelftestOptions& options,
                                      const std::vector<std::string>& flags, LoadOptions load) {
  std::vector<std::string> words{options.null_server};
  words.insert(words.end(), flags.begin(), flags.end());
  const auto server = MUSTER_TRY(ChildServer::start(words, kStartLimit, options.is_cancelled));
  const auto target = MUSTER_TRY(HttpClientTarget::find(server->url()));
  const auto requests = prepare_plain_requests(target.url, "/", {}, {});
  load.is_cancelled = options.is_cancelled;
  return run_load(target, requests.bytes, requests.make_reader, load);
}

TrialSamples stepped_trial(ServiceTimes& services, double seconds,
                           const std::function<double(double)>& factor_at) {
  TrialSamples trial;
  trial.sending_seconds = seconds;
  for (double at = 0; at < seconds;) {
    const double end = at + services.next() * factor_at(at);
    trial.samples.push_back({.intended = at,
                             .ready = at,
                             .started = at,
                             .sent = at,
                             .first_byte = end,
                             .end = end,
                             .status = 200,
                             .outcome = SampleEnd::Answered});
    at = end;
  }
  return trial;
}

}  // namespace muster
