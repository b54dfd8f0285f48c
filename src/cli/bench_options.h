#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/load/api_requests.h"
#include "bench/run/bench_run.h"
#include "cli/command.h"
#include "config/config.h"

namespace muster {

/// What `muster bench` is asked to measure.
enum class BenchTask : std::uint8_t {
  Http,
  Embed,
  Rerank,
  Generate,
  Run,
  Init,
  Diff,
  Report,
  Selftest
};

/// The flags of `muster bench`, and its help.
CommandSpec bench_spec();

/// What counts for one of its verbs, as a spec of its own: "bench diff". Threads: pure.
CommandSpec bench_verb_spec(std::string_view verb);

/// Whether a flag means something for what the first word says. Threads: pure.
bool bench_flag_counts(std::string_view flag, std::string_view verb);

/// The first word. Errors: InvalidArgument, with the nearest right one, or where a flag is given
/// that has no meaning for the task. Threads: pure.
Result<BenchTask> bench_task(const Arguments& arguments);

/// What the flags of a measurement say.
struct BenchPlan {
  BenchTask task = BenchTask::Embed;
  std::string subject;  // a URL, or a model that a server of our own is started with
  ApiOptions api = {};
  std::vector<LoadPoint> points = {};
  std::uint32_t trials = 1;
  double cooldown_seconds = 1;
  std::uint64_t seed = 1;
  WarmUpRule warm_up = {};
  std::vector<Objective> objectives = {};
  bool finds_peak = false;
  double search_seconds_most = 0;             // BenchRunOptions has it
  LengthLaw prompt_words{.median = 0};        // 0: texts come from files
  std::vector<std::string> inputs = {};       // files
  std::string field = "text";                 // of .jsonl and .csv
  bool is_field_asked_for = false;            // by a flag
  std::optional<std::string> tokenizer = {};  // the folder of a model, or a tokenizer.json

  /// One of a Unix socket is a URL, too, which HttpClientTarget::find refuses by name.
  bool is_url() const {
    return subject.starts_with("http://") || subject.starts_with("https://") ||
           subject.starts_with("unix:");
  }
  /// As many different texts as the run can use, at most kMadeTextsMost.
  std::size_t texts_of_use() const;
  /// Of these as many as kMadeBytesMost has room for.
  std::size_t texts_wanted() const;
};

/// Errors: InvalidArgument, NotFound (a trace or key that is not there), naming the flag.
Result<BenchPlan> bench_plan(const Arguments& arguments, BenchTask task);

/// The words by which a server for the run gets the settings that count for the benchmark, whatever
/// gave them: "--devices=2xcpu". Those that say how a model runs and what requests may take; not
/// where clients come in, who is let in, and what is kept or written down.
std::vector<std::string> own_server_settings(const Config& config);

/// The environment ("NAME=value") without what muster would read settings from.
std::vector<std::string> own_server_environment(std::vector<std::string> environment);

/// The words of a command line for the result, which is shared: without the query of a URL, which
/// may keep a secret, and the places of keys. "…" stands for them. Threads: pure.
std::vector<std::string> words_to_share(std::vector<std::string> words);

/// The flags that were given, by name, for the result; without those that name keys.
std::map<std::string, std::string> given_flags(const Arguments& arguments);

}  // namespace muster
