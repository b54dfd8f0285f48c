// Everything that must hold before a command runs: standard streams that are open, signals that
// would end the process ignored where a call's own error says more, output that is flushed and
// whose failure is an error. Exit codes follow from the kind of an error alone; a reader that has
// left gives the code of SIGPIPE, as a shell would show it.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/build_info.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "config/config.h"
#include "terminal/terminal_info.h"

extern char** environ;

namespace muster {
namespace {

constexpr int kUsageExit = 2;              // as InvalidArgument
constexpr int kReaderGoneExit = 128 + 13;  // what a shell shows after SIGPIPE

// Else the first files that are opened would take the places of closed standard streams, and be
// read and written as such. As they are opened here, reading and writing them go on to fail.
void keep_places_of_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest number that is free: this one.
    (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

std::vector<std::string> environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

// Words that are no commands are candidates too: "--versoin" is meant for muster itself.
Error unknown_command(const std::vector<Command>& all, const std::string& word) {
  std::vector<std::string> names{"--help", "--version", "help"};
  for (const auto& command : all) names.push_back(command.spec.name);
  const auto nearest = nearest_name(word, names);
  return Error{ErrorKind::InvalidArgument,
               fmt::format("unknown {}: {}; {}", word.starts_with("-") ? "flag" : "command", word,
                           nearest ? fmt::format("did you mean {}?", *nearest)
                                   : "`muster --help` lists them")};
}

const Command* find_command(const std::vector<Command>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&name](const Command& command) {
    return command.spec.name == name;
  });
  return found == all.end() ? nullptr : &*found;
}

// Behind "bench diff" what counts for it alone.
std::string help_of(const CommandSpec& spec, std::span<const std::string> words,
                    const TerminalInfo& terminal) {
  const bool is_verb = !words.empty() && spec.of_verb != nullptr &&
                       std::any_of(spec.verbs.begin(), spec.verbs.end(),
                                   [&](const Verb& verb) { return verb.name == words.front(); });
  return command_help(is_verb ? spec.of_verb(words.front()) : spec, terminal);
}

Result<int> run_command(const Command& command, std::span<const std::string> words,
                        Output& output) {
  const auto arguments = MUSTER_TRY(parse_arguments(command.spec, words.subspan(2)));
  const auto color = color_choice_of(words);
  if (arguments.wants_help) {
    const auto terminal = inspect_terminal(STDOUT_FILENO, color);
    MUSTER_TRY(output.append(help_of(command.spec, arguments.positionals, terminal)));
    return 0;
  }
  ConfigSources sources;
  sources.flags = arguments.settings;
  sources.environment = environment();
  if (const auto file = arguments.value("--config")) sources.file = *file;
  std::error_code ignored;
  // A working folder that is gone has no muster.yaml, and that is no error.
  sources.working_folder = std::filesystem::current_path(ignored);
  sources.reads_foreign_names = command.spec.reads_foreign_names;
  auto config = MUSTER_TRY(Config::load(sources));
  for (const auto& warning : config.warnings()) {
    say(Tone::Warning, warning, color);
  }
  const SteadyClock clock;
  return command.run({.arguments = arguments,
                      .config = config,
                      .clock = clock,
                      .output = output,
                      .words = {words.begin(), words.end()},
                      .sources = sources,
                      .color = color});
}

bool is_color_flag(const std::string& word) {
  return word == "--color" || word.starts_with("--color=");
}

// "muster --color never embed" is "muster embed --color never".
std::vector<std::string> with_command_first(std::span<const std::string> words) {
  std::size_t at = 1;
  while (at < words.size() && is_color_flag(words[at])) at += words[at] == "--color" ? 2 : 1;
  std::vector<std::string> ordered(words.begin(), words.end());
  if (at == 1 || at >= words.size()) return ordered;
  const auto command = ordered.begin() + static_cast<std::ptrdiff_t>(at);
  std::rotate(ordered.begin() + 1, command, command + 1);
  return ordered;
}

// --color may stand before or behind the word that muster itself answers.
std::vector<std::string> without_color(std::span<const std::string> words) {
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_color_flag(words[i])) {
      rest.push_back(words[i]);
    } else if (words[i] == "--color") {
      ++i;  // its value goes, too
    }
  }
  return rest;
}

// What `muster` itself answers: "--help", "help embed", "--version"; nullopt for a command.
Result<std::optional<int>> answer_itself(const std::vector<Command>& all,
                                         std::span<const std::string> words, Output& output) {
  const auto own = without_color(words);
  const auto terminal = inspect_terminal(STDOUT_FILENO, color_choice_of(words));
  if (own.size() < 2) {
    const auto there = inspect_terminal(STDERR_FILENO, color_choice_of(words));
    std::fputs(general_help(all, there).c_str(), stderr);
    return std::optional(kUsageExit);
  }
  if (own[1] == "--version" || own[1] == "-V") {
    MUSTER_TRY(output.append(fmt::format("muster {}\n", build_name())));
    return std::optional(0);
  }
  if (own[1] != "--help" && own[1] != "-h" && own[1] != "help") return std::optional<int>();
  const auto* command = own.size() > 2 ? find_command(all, own[2]) : nullptr;
  if (own.size() > 2 && command == nullptr) return unknown_command(all, own[2]);
  MUSTER_TRY(output.append(command ? help_of(command->spec, std::span(own).subspan(3), terminal)
                                   : general_help(all, terminal)));
  return std::optional(0);
}

Result<int> run(std::span<const std::string> given, Output& output) {
  const auto all = all_commands();
  const auto words = with_command_first(given);
  if (const auto code = MUSTER_TRY(answer_itself(all, words, output))) return *code;
  const auto* command = find_command(all, words[1]);
  if (command == nullptr) return unknown_command(all, words[1]);
  return run_command(*command, words, output);
}

int run_main(std::span<const std::string> words) {
  Output output(STDOUT_FILENO);
  auto code = run(words, output);
  if (code) {
    // A full disk shows only when the last bytes are written: without this the command would end
    // with 0.
    const auto flushed = output.flush();
    if (!flushed) code = flushed.error();
  }
  if (code) return *code;
  if (output.is_reader_gone()) return kReaderGoneExit;
  say(Tone::Error, code.error().message, color_choice_of(words));
  return exit_code(code.error().kind);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::keep_places_of_standard_streams();
  // A worker that dies or a reader that leaves is an error to handle, not the end of this process.
  std::signal(SIGPIPE, SIG_IGN);
  // Nor is a file that may not become larger: its write fails, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return muster::run_main(std::vector<std::string>(argv, argv + argc));
  } catch (const std::exception& error) {
    // Only a failed allocation can come here: libraries' exceptions end in their adapters.
    std::fprintf(stderr, "muster: %s\n", error.what());
    return muster::exit_code(muster::ErrorKind::ResourceExhausted);
  }
}
