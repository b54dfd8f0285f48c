// The command around a fetch: progress, Ctrl-C, and what is printed at the end. Without --json
// standard output is the folder of the snapshot and nothing else, so that it can be used in a
// shell's command substitution. What was fetched before an interrupt is kept, and the same command
// goes on from there.

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/messages.h"
#include "cli/pull_view.h"
#include "cli/shell_words.h"
#include "hub/hub_access.h"
#include "hub/pull.h"
#include "terminal/progress_bar.h"
#include "terminal/terminal_info.h"

namespace muster {
namespace {

// A piece of a body comes every few hundred microseconds; nobody reads faster than this.
constexpr auto kDrawInterval = std::chrono::milliseconds(100);

// Between two looks at a Ctrl-C that came just before the wait began.
constexpr auto kLookInterval = std::chrono::milliseconds(100);

CommandSpec pull_spec() {
  return {
      .name = "pull",
      .summary = "fetch a model from a Hugging Face hub into the local hub cache",
      .usage = "ORG/NAME",
      .positional_least = 1,
      .positional_most = 1,
      .groups = {{"Which files",
                  {},
                  {{"--revision", "REV", "a branch, a tag or a commit (default: main)"},
                   {.name = "--file",
                    .value_name = "PATTERN",
                    .help = "only these files, not all that muster reads of a model: a name, "
                            "or * for any characters; may be given several times",
                    .may_repeat = true},
                   {"--dry-run", "", "list the files with their sizes and fetch none"}}},
                 {"Hub and cache",
                  {},
                  {{"--hub-endpoint", "URL", "another hub or a mirror (default: HF_ENDPOINT)"},
                   {"--cache-dir", "DIR", "another hub cache (default: HF_HUB_CACHE)"}}},
                 {"Output",
                  {},
                  {{"--json", "", "the files and the bytes received, as a JSON object"},
                   {"--quiet", "", "no progress and no report"}}}},
      .examples =
          "  muster pull sentence-transformers/all-MiniLM-L6-v2\n"
          "  muster embed all-MiniLM-L6-v2 notes.txt -o notes.npy\n"
          "  muster pull ORG/NAME --dry-run\n"
          "  muster pull ORG/NAME-GGUF --file '*Q4_K_M.gguf'\n"
          "\n"
          "Standard output is the folder of the snapshot. A model's configs, its tokenizer\n"
          "and its safetensors are fetched; pickles and GGUF files only by --file. What is\n"
          "here already is not fetched again, what broke off goes on where it stopped, and\n"
          "every file is compared with the hash that the hub states. A name finds the\n"
          "revision main; of any other, give the folder that is printed. Where main has\n"
          "moved on, a pull with --file leaves the name to a snapshot that has more files.\n"
          "\n"
          "HF_TOKEN, HF_TOKEN_PATH, HF_HOME, HF_HUB_CACHE, HF_ENDPOINT and HF_HUB_OFFLINE\n"
          "mean what they mean to huggingface_hub; https_proxy and no_proxy name a proxy,\n"
          "SSL_CERT_FILE its certificate authorities.\n",
      .words = {WordKind::HubModel},
  };
}

// Ends early at a signal: it interrupts poll, and one that came before is seen soon.
void wait_for(const Clock& clock, Duration duration) {
  const auto end = clock.now() + duration;
  while (interrupt_signal() == 0 && clock.now() < end) {
    const auto left = std::min<Duration>(end - clock.now(), kLookInterval);
    ::poll(nullptr, 0,
           static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
  }
}

int say_how_to_go_on(const CommandContext& context, const PullProgress& progress) {
  fmt::print(stderr,
             "muster: stopped; {} of {} files are whole and what has come of the rest is kept, go "
             "on with: {}\n",
             progress.files_done, progress.files_all, join_shell_words(context.words));
  return 128 + interrupt_signal();
}

// The defaults are those of PullOptions; a flag that is not given leaves them.
PullOptions options_of(const Arguments& arguments) {
  PullOptions options{.model = arguments.positionals.front(),
                      .patterns = arguments.values("--file")};
  if (const auto revision = arguments.value("--revision")) options.revision = *revision;
  return options;
}

Status show_result(const CommandContext& context, const PullPlan& plan, std::uint64_t received) {
  if (!context.arguments.has("--quiet")) {
    say(Tone::Notice, describe_pull_end(plan, received), context.color);
  }
  return context.output.append(context.arguments.has("--json") ? pull_json(plan, &received)
                                                               : plan.snapshot.string() + "\n");
}

Status show_plan(const CommandContext& context, const PullPlan& plan) {
  const auto terminal = context.terminal(STDOUT_FILENO);
  return context.output.append(context.arguments.has("--json")
                                   ? pull_json(plan, nullptr)
                                   : describe_pull_plan(plan, terminal));
}

Result<int> run_pull(const CommandContext& context) {
  const auto& arguments = context.arguments;
  const bool is_quiet = arguments.has("--quiet");
  const auto access = MUSTER_TRY(find_hub_access(
      {.endpoint = arguments.value("--hub-endpoint"), .cache = arguments.value("--cache-dir")}));

  catch_interrupts();
  std::optional<ProgressBar> bar;
  bar.emplace(STDERR_FILENO, context.terminal(STDERR_FILENO), context.clock);
  PullProgress last;
  std::optional<TimePoint> drawn;
  const PullEvents events{.on_progress =
                              [&](const PullProgress& progress) {
                                last = progress;
                                const auto now = context.clock.now();
                                if (is_quiet || (drawn && now - *drawn < kDrawInterval)) return;
                                drawn = now;
                                bar->update(pull_reading(progress));
                              },
                          .on_notice = [&](const std::string& sentence) { bar->notice(sentence); },
                          .is_cancelled = [] { return interrupt_signal() != 0; },
                          .wait = [&](Duration duration) { wait_for(context.clock, duration); }};

  const auto plan = plan_pull(access, options_of(arguments), events);
  if (plan) last.files_all = plan->files.size();
  if (plan && arguments.has("--dry-run")) {
    MUSTER_TRY(show_plan(context, *plan));
    return 0;
  }
  // One outcome for planning and fetching, so that an interrupt is handled in one place.
  const auto received = !plan           ? Result<std::uint64_t>(plan.error())
                        : plan->is_done ? Result<std::uint64_t>(std::uint64_t{0})
                                        : fetch_files(access, *plan, events);
  bar.reset();
  if (!received) {
    const bool is_interrupt = interrupt_signal() != 0;
    if (is_interrupt && received.error().kind == ErrorKind::Cancelled) {
      return say_how_to_go_on(context, last);
    }
    return received.error();
  }
  MUSTER_TRY(show_result(context, *plan, *received));
  return 0;
}

}  // namespace

Command pull_command() { return {pull_spec(), run_pull}; }

}  // namespace muster
