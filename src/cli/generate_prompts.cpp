// muster generate --prompts: a run over a corpus as `embed` is one, with another report. Standard
// output belongs to the replies when they go there, and then the report moves to standard error.

#include "cli/generate_prompts.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "cli/corpus_command.h"
#include "cli/interrupt.h"
#include "cli/replies_options.h"
#include "cli/replies_report.h"

namespace muster {
namespace {

Status show_report(const CommandContext& context, const RepliesReport& report, bool is_stream) {
  if (context.arguments.has("--json")) return context.output.append(replies_report_json(report));
  if (context.arguments.has("--quiet")) return Done{};
  const auto text =
      describe_replies(report, context.terminal(is_stream ? STDERR_FILENO : STDOUT_FILENO));
  if (!is_stream) return context.output.append(text);
  std::fputs(text.c_str(), stderr);
  return Done{};
}

}  // namespace

Result<int> run_generate_prompts(const CommandContext& context) {
  catch_interrupts();
  CorpusBar bar(context, "replies");
  const auto on_notice = [&](const std::string& sentence) {
    if (!context.arguments.has("--quiet")) bar.events().on_notice(sentence);
  };
  auto options = MUSTER_TRY(replies_options(context));
  const bool is_stream = options.stream.has_value();
  const auto settled = settle_for_replies(
      context, on_notice, [&bar] { bar.show("measuring precisions"); }, options);
  const auto report = settled
                          ? generate_replies(options, bar.events(), context.clock, is_interrupted)
                          : Result<RepliesReport>(settled.error());
  bar.clear();
  if (!report) {
    return ended_early(context, report.error(),
                       {.files = RunFiles(options.out, OutputKind::Replies),
                        .inputs = options.input.inputs,
                        .is_stream = is_stream,
                        .result = "reply",
                        .kept = "reply",
                        .all_kept = "replies"});
  }
  MUSTER_TRY(show_report(context, *report, is_stream));
  return 0;
}

}  // namespace muster
