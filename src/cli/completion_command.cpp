// `muster completion`: the scripts for shells, and the answers that the scripts ask for. The
// scripts hold no words of their own: they ask this program each time, so that they never differ
// from it. Asking must be quick and must not fail, so a machine that cannot be looked at gives no
// devices and no error.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/completion/candidates.h"
#include "cli/completion/scripts.h"
#include "cli/find_machine.h"
#include "modelfile/hub_cache.h"

namespace muster {
namespace {

constexpr std::string_view kWordsVerb = "words";  // not among the verbs: it is for the scripts
constexpr std::size_t kWordsMost = 1'000'000;     // what a shell's pattern may have become

CommandSpec completion_spec() {
  return {.name = "completion",
          .summary = "print the script that completes words in a shell",
          .usage = "bash | zsh | fish",
          .positional_least = 1,
          .positional_most = kWordsMost,
          .groups = {},
          .examples =
              "  source <(muster completion bash)\n"
              "  muster completion zsh > _muster\n"
              "  muster completion fish > muster.fish\n"
              "\n"
              "`cmake --install` puts them where the shells look. The scripts ask\n"
              "`muster completion words -- WORD...`, which prints what may stand in the\n"
              "place of the last word: commands, flags, values, devices, and the models of\n"
              "the catalogue and the hub cache.\n",
          .verbs = {{"bash", "for bash 4.4 and newer"},
                    {"zsh", "for zsh 5 and newer"},
                    {"fish", "for fish 3 and newer"}}};
}

// A machine whose driver does not answer has its CPUs all the same.
std::vector<Candidate> devices_here(const CommandContext& context) {
  std::vector<Candidate> all;
  const auto found = find_machine(context.config, context.clock, true);
  if (!found) return all;
  for (const auto& gpu : found->inventory.gpus) all.push_back({gpu.name(), gpu.model});
  for (const auto& cpu : found->inventory.cpus) all.push_back({cpu.name(), cpu.model});
  // One example of a form that no list of devices shows.
  if (found->inventory.core_count > 1) all.push_back({"2xcpu", "the cores in two halves"});
  return all;
}

// Sources are functions, asked only where such a word may stand: looking for devices may take a
// second.
Result<int> print_candidates(const CommandContext& context) {
  const auto& given = context.arguments.positionals;
  const CompletionSources sources{.devices = [&] { return devices_here(context); },
                                  .cached_models = [] { return cached_hub_ids(hub_cache()); }};
  const auto all = all_commands();
  const auto found = candidates(all, std::span(given).subspan(1), sources);
  MUSTER_TRY(context.output.append(candidate_lines(found)));
  return 0;
}

Result<int> run_completion(const CommandContext& context) {
  const auto& words = context.arguments.positionals;
  if (words.front() == kWordsVerb) return print_candidates(context);
  const auto script = completion_script(words.front());
  if (!script) {
    const auto names = shell_names();
    const auto nearest = nearest_name(words.front(), names);
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("muster completion knows no shell \"{}\"; {}", words.front(),
                             nearest ? fmt::format("did you mean {}?", *nearest)
                                     : fmt::format("it knows {}", fmt::join(names, ", ")))};
  }
  if (words.size() > 1) {
    return Error{ErrorKind::InvalidArgument, fmt::format("one word too many: \"{}\"", words[1])};
  }
  MUSTER_TRY(context.output.append(std::string(*script)));
  return 0;
}

}  // namespace

Command completion_command() { return {completion_spec(), run_completion}; }

}  // namespace muster
