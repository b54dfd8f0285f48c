// One table says which flag counts for which task; everything else is reading numbers. A flag
// without meaning for a task is refused and not ignored, because a measurement that silently
// differs from what was asked for is worse than none. Bounds keep a slip (a rate of 1e9) from
// becoming a run that takes all memory.
#include "cli/bench_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "cli/interval.h"
#include "cli/server_client.h"
#include "config/foreign_names.h"
#include "config/schema.h"

namespace muster {
namespace {

constexpr double kRateMost = 1e6;
constexpr std::uint32_t kClientsMost = 16'384;
constexpr std::uint32_t kTrialsMost = 1'000;
constexpr std::uint32_t kBatchMost = 4'096;
constexpr double kDefaultSeconds = 10;
// Where the search for a peak begins when --rate does not say: low enough for most servers.
constexpr double kDefaultPeakRate = 10;
// A trial of a search without a --duration of its own: whoever wants the 99.9th percentile of a few
// requests a second must say how long it may take.
constexpr double kSearchSecondsMost = 120;
constexpr std::size_t kTextsLeast = 1'000;

struct TaskName {
  std::string_view name;
  BenchTask task;
  char letter;
};
constexpr std::array kTasks{
    TaskName{"http", BenchTask::Http, 'h'},        TaskName{"embed", BenchTask::Embed, 'e'},
    TaskName{"rerank", BenchTask::Rerank, 'r'},    TaskName{"generate", BenchTask::Generate, 'g'},
    TaskName{"run", BenchTask::Run, 'R'},          TaskName{"init", BenchTask::Init, 'i'},
    TaskName{"diff", BenchTask::Diff, 'd'},        TaskName{"report", BenchTask::Report, 'p'},
    TaskName{"selftest", BenchTask::Selftest, 's'}};

// Letters of the tasks for which a flag counts: h e r g (measuring), R (a file's points), i, d, p
// (report), s.
struct FlagUse {
  std::string_view flag;
  std::string_view tasks;
};
constexpr std::array kUses{FlagUse{"--clients", "herg"},     FlagUse{"--rate", "herg"},
                           FlagUse{"--arrivals", "herg"},    FlagUse{"--trace", "herg"},
                           FlagUse{"--connections", "herg"}, FlagUse{"--requests", "herg"},
                           FlagUse{"--duration", "herg"},    FlagUse{"--warm-up", "herg"},
                           FlagUse{"--trials", "herg"},      FlagUse{"--cooldown", "herg"},
                           FlagUse{"--timeout", "herg"},     FlagUse{"--seed", "hergs"},
                           FlagUse{"--input", "herg"},       FlagUse{"--prompt-words", "erg"},
                           FlagUse{"--batch", "er"},         FlagUse{"--output-tokens", "g"},
                           FlagUse{"--ignore-eos", "g"},     FlagUse{"--completions", "g"},
                           FlagUse{"--tokenizer", "g"},      FlagUse{"--extra-body", "erg"},
                           FlagUse{"--model", "erg"},        FlagUse{"--api-key-file", "herg"},
                           FlagUse{"--ca-file", "herg"},     FlagUse{"--client-cert", "herg"},
                           FlagUse{"--client-key", "herg"},  FlagUse{"--slo", "herg"},
                           FlagUse{"--find-peak", "herg"},   FlagUse{"--resume", "R"},
                           FlagUse{"--restart", "R"},        FlagUse{"--allow-missing", "R"},
                           FlagUse{"--out", "hergip"},       FlagUse{"--json", "hergdsR"},
                           FlagUse{"--title", "p"},          FlagUse{"--confidence", "dp"},
                           FlagUse{"--tolerance", "dp"},     FlagUse{"--full", "s"}};

Error invalid(std::string_view flag, std::string_view wants, std::string_view text) {
  return {ErrorKind::InvalidArgument, fmt::format("{} must be {}: \"{}\"", flag, wants, text)};
}

template <typename Number>
Result<Number> number(std::string_view flag, std::string_view text, Number least, Number most) {
  Number value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  // "nan" is read as a number, too, and lies in no range.
  const bool is_within = value >= least && value <= most;
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || !is_within) {
    return invalid(flag, fmt::format("a number from {} to {}", least, most), text);
  }
  return value;
}

template <typename Number>
Result<Number> number_or(const Arguments& arguments, std::string_view flag, Number usual,
                         Number least, Number most) {
  const auto text = arguments.value(flag);
  if (!text) return usual;
  return number(flag, *text, least, most);
}

Result<double> seconds_or(const Arguments& arguments, std::string_view flag, double usual) {
  const auto text = arguments.value(flag);
  if (!text) return usual;
  return seconds(MUSTER_TRY(parse_interval(flag, *text)));
}

// A rule without a number finds the end of the warm-up itself; a number of 0 cuts nothing.
Result<WarmUpRule> warm_up_rule(const Arguments& arguments) {
  const auto text = arguments.value("--warm-up").value_or("auto");
  if (text == "auto") return WarmUpRule{};
  if (text == "none") return WarmUpRule{.seconds = 0.0};
  const auto time = parse_interval("--warm-up", text);
  if (!time) return invalid("--warm-up", "auto, none or a time, as 5s", text);
  return WarmUpRule{.seconds = seconds(*time)};
}

Result<ArrivalLaw> arrival_law(const Arguments& arguments) {
  const auto text = arguments.value("--arrivals").value_or("poisson");
  for (const auto law : {ArrivalLaw::Poisson, ArrivalLaw::Constant}) {
    if (arrival_law_name(law) == text) return law;
  }
  return invalid("--arrivals", "poisson or constant", text);
}

// "100" or "10..200". A ramp takes so long; one rate has no ramp.
Result<ArrivalPlan> rate_plan(std::string_view text, ArrivalLaw law, double seconds) {
  constexpr std::string_view kTo = "..";
  const auto to = text.find(kTo);
  const auto begin = number<double>("--rate", text.substr(0, to), 0, kRateMost);
  auto end = begin;
  if (to != std::string_view::npos) {
    end = number<double>("--rate", text.substr(to + kTo.size()), 0, kRateMost);
  }
  if (!begin || !end || *begin <= 0 || *end <= 0) {
    return invalid("--rate",
                   fmt::format("requests a second above 0 and up to {}, as 100, or 10..200 for a "
                               "rate that rises",
                               kRateMost),
                   text);
  }
  return ArrivalPlan{.law = law,
                     .rate_begin = *begin,
                     .rate_end = *end,
                     .ramp_seconds = to == std::string_view::npos ? 0 : seconds};
}

// A number of requests alone takes as long as it takes.
bool is_by_count(const Arguments& arguments) {
  return arguments.has("--requests") && !arguments.has("--duration");
}

Result<LoadOptions> common_load(const Arguments& arguments) {
  LoadOptions load;
  load.connections_most = MUSTER_TRY(
      number_or<std::uint32_t>(arguments, "--connections", load.connections_most, 1, kClientsMost));
  load.answer_limit_seconds =
      MUSTER_TRY(seconds_or(arguments, "--timeout", load.answer_limit_seconds));
  load.requests_most =
      MUSTER_TRY(number_or<std::uint64_t>(arguments, "--requests", kSamplesMost, 1, kSamplesMost));
  constexpr double kLong = 86'400;
  const double usual = is_by_count(arguments) ? kLong : kDefaultSeconds;
  load.seconds = MUSTER_TRY(seconds_or(arguments, "--duration", usual));
  return load;
}

Status add_points(const Arguments& arguments, std::vector<LoadPoint>& points) {
  const auto common = MUSTER_TRY(common_load(arguments));
  const auto add = [&points](const LoadOptions& load) {
    points.push_back({.name = load_name(load), .load = load});
  };
  if (const auto file = arguments.value("--trace")) {
    constexpr std::uint64_t kTraceBytesMost = 1ULL << 30;
    auto load = common;
    load.arrivals = ArrivalPlan{.law = ArrivalLaw::Trace};
    const auto text = MUSTER_TRY(read_file(*file, kTraceBytesMost));
    const double most =
        arguments.has("--duration") ? std::numeric_limits<double>::infinity() : kTraceSecondsMost;
    load.arrivals->trace = MUSTER_TRY(parse_arrival_trace(text, *file, most));
    // Until the last request of the trace was sent, and a second for clocks.
    if (!arguments.has("--duration")) load.seconds = load.arrivals->trace.back() + 1;
    add(load);
    return Done{};
  }
  const auto law = MUSTER_TRY(arrival_law(arguments));
  if (const auto rates = arguments.value("--rate")) {
    for (const auto& rate : split(*rates, ',')) {
      auto load = common;
      auto arrivals = MUSTER_TRY(rate_plan(trim(rate), law, load.seconds));
      if (is_by_count(arguments) && arrivals.ramp_seconds > 0) {
        // In which so many requests are expected, at the mean of both rates.
        arrivals.ramp_seconds = 2.0 * static_cast<double>(load.requests_most) /
                                (arrivals.rate_begin + arrivals.rate_end);
      }
      load.arrivals = std::move(arrivals);
      add(load);
    }
    return Done{};
  }
  if (arguments.has("--find-peak")) {
    auto load = common;
    load.arrivals = ArrivalPlan{.law = law, .rate_begin = kDefaultPeakRate};
    add(load);
    return Done{};
  }
  for (const auto& count : split(arguments.value("--clients").value_or("1"), ',')) {
    auto load = common;
    load.clients = MUSTER_TRY(number<std::uint32_t>("--clients", trim(count), 1, kClientsMost));
    add(load);
  }
  return Done{};
}

Status check_points(const BenchPlan& plan) {
  std::set<std::string_view> names;
  for (const auto& point : plan.points) {
    if (names.insert(point.name).second) continue;
    // Whoever compares results could not tell them apart.
    return invalid_error(
        fmt::format("{} is named twice: --trials measures a load several times", point.name));
  }
  // All points have the same time. A number of requests alone takes as long as it takes.
  const double sent_seconds = plan.points.front().load.seconds;
  if (plan.warm_up.seconds && *plan.warm_up.seconds >= sent_seconds) {
    return invalid_error(fmt::format(
        "--warm-up leaves nothing of the {} s in which requests are sent", sent_seconds));
  }
  return Done{};
}

// Of rerank with the query.
std::uint64_t texts_per_request(const BenchPlan& plan) {
  return plan.api.texts_per_request + (plan.task == BenchTask::Rerank ? 1U : 0U);
}

// Flags of a server that runs already, and of one with a certificate.
Status check_server_flags(const Arguments& arguments, const BenchPlan& plan) {
  const auto refuse = [](std::string message) {
    return Error{ErrorKind::InvalidArgument, std::move(message)};
  };
  constexpr std::array<std::string_view, 5> kOfServers{"--model", "--api-key-file", "--ca-file",
                                                       "--client-cert", "--client-key"};
  for (const auto flag : kOfServers) {
    if (!plan.is_url() && arguments.has(flag)) {
      return refuse(fmt::format("{} is for a server that runs already", flag));
    }
    const bool is_of_tls = flag != "--model" && flag != "--api-key-file";
    if (is_of_tls && plan.subject.starts_with("http://") && arguments.has(flag)) {
      return refuse(fmt::format("{} counts with https://, and {} has no certificate", flag,
                                plan.subject.substr(0, plan.subject.find('?'))));
    }
  }
  return Done{};
}

// What a task never measures could be neither kept nor missed.
Result<std::vector<Objective>> objectives_of(const Arguments& arguments, BenchTask task) {
  const auto slo = arguments.value("--slo");
  if (!slo) return std::vector<Objective>();
  auto objectives = parse_objectives(*slo);
  if (!objectives) return Error{objectives.error().kind, "--slo: " + objectives.error().message};
  for (const auto& one : *objectives) {
    const auto kind = one.figure.substr(0, one.figure.find('_'));
    const bool is_of_tokens = kind == "ttft" || kind == "tpot" || kind == "itl";
    if (is_of_tokens && task != BenchTask::Generate) {
      return invalid_error(fmt::format(
          "--slo: {} is of replies that come token by token, as muster bench generate has them",
          one.figure));
    }
    if (kind == "token" && task == BenchTask::Http) {
      return invalid_error(
          fmt::format("--slo: {} is not known of plain HTTP: embed, rerank and generate count "
                      "tokens",
                      one.figure));
    }
  }
  return objectives;
}

// So few requests that no rate could ever be known to keep the objectives.
Status check_search_counts(const BenchPlan& plan) {
  if (!plan.finds_peak) return Done{};
  const auto most = plan.points.front().load.requests_most;
  for (const auto& one : plan.objectives) {
    const auto needed = samples_needed_of(one.figure);
    const bool is_of_requests = !one.figure.starts_with("itl");  // an answer has many gaps
    if (!needed || !is_of_requests || *needed <= most) continue;
    return invalid_error(
        fmt::format("--requests {} are too few: {} needs {}", most, one.figure, *needed));
  }
  return Done{};
}

// Flags that say the opposite of one another, or need one that is not there.
Status check_together(const Arguments& arguments, const BenchPlan& plan) {
  const auto refuse = [](std::string message) {
    return Error{ErrorKind::InvalidArgument, std::move(message)};
  };
  constexpr std::array<std::string_view, 3> kLoads{"--clients", "--rate", "--trace"};
  std::string_view first;
  for (const auto flag : kLoads) {
    if (!arguments.has(flag)) continue;
    if (!first.empty()) return refuse(fmt::format("{} and {} are two kinds of load", first, flag));
    first = flag;
  }
  const bool is_open = plan.points.front().load.arrivals.has_value();
  if (!is_open && arguments.has("--connections")) {
    return refuse(
        "--connections counts with --rate or --trace; a closed loop has one for each client");
  }
  if (!arguments.has("--rate") && !plan.finds_peak && arguments.has("--arrivals")) {
    return refuse("--arrivals counts with --rate");
  }
  const bool is_one_trial = plan.trials == 1 && plan.points.size() == 1 && !plan.finds_peak;
  if (is_one_trial && arguments.has("--cooldown")) {
    return refuse(
        "--cooldown is between trials, and there is one: it counts with --trials, several loads or "
        "--find-peak");
  }
  if (plan.finds_peak) {
    if (plan.objectives.empty())
      return refuse("--find-peak needs an objective: --slo latency_p99<500ms");
    if (plan.points.size() > 1 || !is_open || plan.points.front().load.arrivals->ramp_seconds > 0 ||
        arguments.has("--trace") || arguments.has("--trials") || arguments.has("--clients")) {
      return refuse("--find-peak looks for the rate itself: --rate is one number, where it begins");
    }
  }
  if (!arguments.values("--input").empty() && arguments.has("--prompt-words")) {
    return refuse("--input and --prompt-words are two kinds of texts");
  }
  for (const auto& given : arguments.settings) {
    if (given.id == SettingId::Field) {
      if (plan.inputs.empty()) return refuse("--field counts with --input");
    } else if (plan.is_url()) {
      return refuse(fmt::format("{} is for a server that is started here, and {} runs already",
                                given.place, plan.subject));
    }
  }
  return check_server_flags(arguments, plan);
}

// What a request has is in memory as one piece, and nobody serves such a piece.
Status check_made_texts(const BenchPlan& plan) {
  if (plan.task == BenchTask::Http || !plan.inputs.empty()) return Done{};
  const auto bytes = texts_per_request(plan) * made_text_bytes(plan.prompt_words);
  if (bytes <= kMadeBytesMost) return Done{};
  return Error{
      ErrorKind::InvalidArgument,
      fmt::format("--prompt-words makes requests of about {}, of {} texts each, and at "
                  "most {} are made: take shorter texts or fewer in a request",
                  human_bytes(bytes), texts_per_request(plan), human_bytes(kMadeBytesMost))};
}

// Results are shared: the places of secrets do not go into them.
bool is_key_flag(std::string_view flag) {
  return flag == "--api-key-file" || flag == "--client-key";
}

BenchApi api_of(BenchTask task, const Arguments& arguments) {
  switch (task) {
    case BenchTask::Embed:
      return BenchApi::Embeddings;
    case BenchTask::Rerank:
      return BenchApi::Rerank;
    case BenchTask::Generate:
      return arguments.has("--completions") ? BenchApi::Completions : BenchApi::Chat;
    default:
      return BenchApi::Http;
  }
}

}  // namespace

// As many texts as requests where that number is known, so that no text comes twice and a server's
// cache cannot answer; between a least and a most number, which bound the time before the run.
std::size_t BenchPlan::texts_of_use() const {
  double requests = 0;
  for (const auto& point : points) {
    // A closed loop may be as fast as it likes, and so may the rates of a search.
    double count = static_cast<double>(kMadeTextsMost);
    if (point.load.arrivals && !finds_peak) {
      const auto& arrivals = *point.load.arrivals;
      count = arrivals.law == ArrivalLaw::Trace
                  ? static_cast<double>(arrivals.trace.size())
                  : std::max(arrivals.rate_begin, arrivals.rate_end) * point.load.seconds;
    }
    requests = std::max(requests, std::min(count, static_cast<double>(point.load.requests_most)));
  }
  const auto per_request = static_cast<double>(texts_per_request(*this));
  const auto texts_of = [per_request](double count) {
    return static_cast<std::size_t>(
        std::min(count * per_request, static_cast<double>(kMadeTextsMost)));
  };
  // Chance may draw some requests more than a rate expects, but none more than --requests says.
  const auto most = texts_of(static_cast<double>(points.front().load.requests_most));
  return std::max(texts_of(requests), std::min(kTextsLeast, most));
}

std::size_t BenchPlan::texts_wanted() const {
  return std::min<std::size_t>(texts_of_use(), kMadeBytesMost / made_text_bytes(prompt_words));
}

bool bench_flag_counts(std::string_view flag, std::string_view verb) {
  const auto* const task = std::ranges::find(kTasks, verb, &TaskName::name);
  const auto* const use = std::ranges::find(kUses, flag, &FlagUse::flag);
  return task != kTasks.end() && use != kUses.end() &&
         use->tasks.find(task->letter) != std::string_view::npos;
}

Result<BenchTask> bench_task(const Arguments& arguments) {
  const auto& word = arguments.positionals.front();
  const auto* const found =
      std::ranges::find_if(kTasks, [&](const TaskName& task) { return task.name == word; });
  if (found == kTasks.end()) {
    std::vector<std::string> names;
    for (const auto& task : kTasks) names.emplace_back(task.name);
    const auto nearest = nearest_name(word, names);
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("muster bench does not know {}; {}", word,
                             nearest ? fmt::format("did you mean {}?", *nearest)
                                     : fmt::format("it knows {}", fmt::join(names, ", ")))};
  }
  for (const auto& use : kUses) {
    const bool is_given = arguments.has(use.flag) || !arguments.values(use.flag).empty();
    if (is_given && use.tasks.find(found->letter) == std::string_view::npos) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{} has no meaning for muster bench {}", use.flag, word)};
    }
  }
  constexpr std::string_view kMeasuring = "herg";
  const bool is_measuring = kMeasuring.find(found->letter) != std::string_view::npos;
  if (!is_measuring && !arguments.settings.empty()) {
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("{} has no meaning for muster bench {}{}", arguments.settings.front().place,
                    word, found->task == BenchTask::Run ? ": its file says it" : "")};
  }
  return found->task;
}

Result<BenchPlan> bench_plan(const Arguments& arguments, BenchTask task) {
  if (arguments.positionals.size() != 2) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("muster bench {} wants one {}", arguments.positionals.front(),
                             task == BenchTask::Http ? "URL" : "model or URL")};
  }
  BenchPlan plan{.task = task, .subject = arguments.positionals[1]};
  plan.trials = MUSTER_TRY(number_or<std::uint32_t>(arguments, "--trials", 1, 1, kTrialsMost));
  plan.cooldown_seconds = MUSTER_TRY(seconds_or(arguments, "--cooldown", plan.cooldown_seconds));
  plan.seed = MUSTER_TRY(number_or<std::uint64_t>(arguments, "--seed", 1, 0, ~0ULL));
  plan.warm_up = MUSTER_TRY(warm_up_rule(arguments));
  plan.finds_peak = arguments.has("--find-peak");
  if (!arguments.has("--duration")) plan.search_seconds_most = kSearchSecondsMost;
  plan.objectives = MUSTER_TRY(objectives_of(arguments, task));
  MUSTER_TRY(add_points(arguments, plan.points));
  plan.inputs = arguments.values("--input");
  plan.tokenizer = arguments.value("--tokenizer");
  plan.prompt_words = MUSTER_TRY(parse_length_law(
      "--prompt-words", arguments.value("--prompt-words").value_or("lognormal:64:0.5")));
  plan.api.api = api_of(task, arguments);
  plan.api.model = arguments.value("--model").value_or("");
  const std::uint32_t usual_batch = task == BenchTask::Rerank ? 8 : 1;
  plan.api.texts_per_request =
      MUSTER_TRY(number_or<std::uint32_t>(arguments, "--batch", usual_batch, 1, kBatchMost));
  plan.api.output_tokens = MUSTER_TRY(
      parse_length_law("--output-tokens", arguments.value("--output-tokens").value_or("64")));
  plan.api.ignores_eos = arguments.has("--ignore-eos");
  if (const auto body = arguments.value("--extra-body")) {
    MUSTER_TRY(check_extra_body(*body));
    plan.api.extra_body = *body;
  }
  plan.api.seed = plan.seed;
  MUSTER_TRY(check_points(plan));
  MUSTER_TRY(check_together(arguments, plan));
  MUSTER_TRY(check_made_texts(plan));
  MUSTER_TRY(check_search_counts(plan));
  return plan;
}

std::vector<std::string> own_server_settings(const Config& config) {
  using enum SettingId;
  constexpr std::array kPassed{Devices,
                               DeviceCountMost,
                               CoresPerDevice,
                               Precision,
                               BatchTokens,
                               MaxLength,
                               Pooling,
                               Normalize,
                               PromptName,
                               TorchRoot,
                               WorkerProgram,
                               CacheDir,
                               NvmlPath,
                               SysfsRoot,
                               MaxBodyBytes,
                               ConnectionsMost,
                               MemoryMost,
                               MaxClientBatchSize,
                               AutoTruncate,
                               RequestTimeout,
                               RequestTimeoutMost,
                               LoadBalancingStrategy,
                               MemoryThreshold,
                               DeviceWeights,
                               TaskTypes,
                               SettingId::PlacementExpression,
                               QueueBudget,
                               QueuedTokensMost,
                               QueuedTextsMost,
                               BatchTime,
                               LowLatency,
                               CanaryInterval,
                               CanaryTimeout};
  std::vector<std::string> words;
  for (const auto id : kPassed) {
    const auto& given = config.at(id);
    if (given.origin == Origin::Default || !given.value) continue;
    const auto& setting = setting_of(id);
    const auto flag = flag_of(setting.name);
    if (setting.type != SettingType::Switch) {
      words.push_back(fmt::format("{}={}", flag, *given.value));
    } else {
      words.push_back(*given.value == "true" ? flag : "--no-" + flag.substr(2));
    }
  }
  return words;
}

std::vector<std::string> own_server_environment(std::vector<std::string> environment) {
  std::vector<std::string> names;
  for (const auto& found : foreign_names_in(environment)) names.push_back(found.name);
  std::erase_if(environment, [&](const std::string& entry) {
    const auto name = entry.substr(0, entry.find('='));
    return name.starts_with("MUSTER_") ||
           std::find(names.begin(), names.end(), name) != names.end();
  });
  return environment;
}

std::vector<std::string> words_to_share(std::vector<std::string> words) {
  bool is_place = false;  // the word behind a flag that names a key
  for (auto& word : words) {
    const auto equals = word.find('=');
    const bool names_key = is_key_flag(std::string_view(word).substr(0, equals));
    const auto question = word.find('?');
    const bool is_url = word.starts_with("http://") || word.starts_with("https://");
    if (is_place) {
      word = "…";
    } else if (names_key && equals != std::string::npos) {
      word.replace(equals + 1, std::string::npos, "…");
    } else if (is_url && question != std::string::npos) {
      word.replace(question + 1, std::string::npos, "…");
    }
    is_place = !is_place && names_key && equals == std::string::npos;
  }
  return words;
}

std::map<std::string, std::string> given_flags(const Arguments& arguments) {
  std::map<std::string, std::string> flags;
  for (const auto& [name, value] : arguments.flags) {
    if (!is_key_flag(name)) flags[name] = value;
  }
  for (const auto& [name, values] : arguments.repeated) {
    flags[name] = fmt::format("{}", fmt::join(values, ","));
  }
  for (const auto& given : arguments.settings) {
    flags[flag_of(setting_of(given.id).name)] = given.value;
  }
  return flags;
}

}  // namespace muster
