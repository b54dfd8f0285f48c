// One measurement, from the plan to the result: for the command line, and for each point of a
// file. Everything that can be refused without a server is refused before one is started.
#include "cli/bench_measurement.h"

#include <algorithm>
#include <utility>

#include "bench/run/bench_run.h"
#include "cli/descriptor_limit.h"
#include "cli/interrupt.h"
#include "cli/messages.h"

namespace muster {
namespace {

bool is_cancelled() { return interrupt_signal() != 0; }

// Figures of a run without a single answer would be figures of nothing.
// The first problem that was seen goes into the error, because it is most likely why all of them
// failed.
Status check_answered(const BenchResult& result) {
  std::string problem = "the time was over before the first";
  bool was_any_answered = false;
  for (const auto& point : result.points) {
    for (const auto& trial : point.trials) {
      if (trial.summary.answered > 0) return Done{};
      if (!trial.samples.problems.empty()) problem = trial.samples.problems.front();
      was_any_answered =
          was_any_answered || std::ranges::any_of(trial.samples.samples, &Sample::is_answered);
    }
  }
  if (was_any_answered) {
    return Error{ErrorKind::InvalidArgument,
                 "no request is counted: all that were answered were sent within the warm-up"};
  }
  return Error{ErrorKind::Unavailable, "no request was answered: " + problem};
}

BenchRunOptions run_options(const BenchPlan& plan, const BenchHooks& hooks) {
  BenchRunOptions options{.points = plan.points,
                          .trials = plan.trials,
                          .cooldown_seconds = plan.cooldown_seconds,
                          .seed = plan.seed,
                          .warm_up = plan.warm_up,
                          .objectives = plan.objectives,
                          .finds_peak = plan.finds_peak,
                          .search_seconds_most = plan.search_seconds_most};
  options.on_trial_begin = hooks.on_trial_begin;
  options.on_trial_end = hooks.on_trial_end;
  options.is_cancelled = is_cancelled;
  options.on_step = say_bench_step;
  return options;
}

}  // namespace

void say_bench_step(std::string_view text) { say(Tone::Notice, text, ColorChoice::Never); }

Result<BenchResult> measure(const CommandContext& context, BenchPlan plan,
                            const BenchHooks& hooks) {
  const auto& field = context.config.at(SettingId::Field);
  plan.field = field.value.value_or(plan.field);
  plan.is_field_asked_for = field.origin == Origin::Flag;
  auto options = run_options(plan, hooks);
  if (plan.tokenizer) options.count_tokens = MUSTER_TRY(token_counter(*plan.tokenizer));
  auto texts = MUSTER_TRY(bench_texts(plan));
  catch_interrupts();
  raise_descriptor_limit();  // each client is a connection
  const auto server = MUSTER_TRY(open_bench_server(context, plan));
  // A server that this command has started serves the one model of the plan; another one is asked
  // for its list.
  if (plan.task != BenchTask::Http && plan.api.model.empty() && plan.is_url()) {
    plan.api.model = MUSTER_TRY(
        first_listed_model(context, server, plan.points.front().load.answer_limit_seconds));
  }
  const auto requests = make_bench_requests(plan, server, texts);
  texts = {};  // up to a million, which the requests hold now
  options.target = &server.target;
  options.requests = &requests;
  if (server.own) options.server_cpu_seconds = [&server] { return server.own->cpu_seconds(); };
  BenchResult result{.api = std::string(bench_api_name(plan.api.api)),
                     .url = plan.subject.substr(0, plan.subject.find('?')),
                     .model = plan.api.model,
                     .server = {},
                     .command = words_to_share(context.words),
                     .settings = given_flags(context.arguments),
                     .environment = find_environment(),
                     .points = {},
                     .order = {}};
  MUSTER_TRY(hooks.on_ready(server));
  MUSTER_TRY(run_bench(options, result));
  if (server.own) MUSTER_TRY(server.own->check_running());
  MUSTER_TRY(check_answered(result));
  MUSTER_TRY(hooks.on_measured(server, result));
  return result;
}

}  // namespace muster
