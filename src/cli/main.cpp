#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/build_info.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/output.h"
#include "config/config.h"
#include "terminal/text_width.h"

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

Error unknown_command(const std::vector<Command>& all, const std::string& word) {
  std::vector<std::string> names{"--help", "--version", "help"};
  for (const auto& command : all) names.push_back(command.spec.name);
  const auto nearest = nearest_name(word, names);
  return Error{ErrorKind::InvalidArgument,
               fmt::format("unknown {}: {}; {}", word.starts_with("-") ? "flag" : "command", word,
                           nearest ? fmt::format("did you mean {}?", *nearest)
                                   : "`muster --help` lists them")};
}

Result<int> run_command(const Command& command, std::span<const std::string> words,
                        Output& output) {
  const auto arguments = MUSTER_TRY(parse_arguments(command.spec, words.subspan(2)));
  if (arguments.wants_help) {
    MUSTER_TRY(output.append(command_help(command.spec)));
    return 0;
  }
  ConfigSources sources;
  sources.flags = arguments.settings;
  sources.environment = environment();
  if (const auto file = arguments.value("--config")) sources.file = *file;
  std::error_code ignored;
  sources.working_folder = std::filesystem::current_path(ignored);
  sources.reads_foreign_names = command.spec.reads_foreign_names;
  auto config = MUSTER_TRY(Config::load(sources));
  for (const auto& warning : config.warnings()) {
    fmt::print(stderr, "muster: warning: {}\n", printable(warning));
  }
  const SteadyClock clock;
  return command.run({.arguments = arguments,
                      .config = config,
                      .clock = clock,
                      .output = output,
                      .words = {words.begin(), words.end()},
                      .sources = sources});
}

Result<int> run(std::span<const std::string> words, Output& output) {
  const auto all = all_commands();
  if (words.size() < 2) {
    std::fputs(general_help(all).c_str(), stderr);
    return kUsageExit;
  }
  const auto& word = words[1];
  const auto find = [&all](const std::string& name) {
    for (const auto& command : all) {
      if (command.spec.name == name) return &command;
    }
    return static_cast<const Command*>(nullptr);
  };
  if (word == "--version" || word == "-V") {
    MUSTER_TRY(output.append(fmt::format("muster {}\n", build_name())));
    return 0;
  }
  if (word == "--help" || word == "-h" || word == "help") {
    const auto* command = words.size() > 2 ? find(words[2]) : nullptr;
    if (words.size() > 2 && command == nullptr) return unknown_command(all, words[2]);
    MUSTER_TRY(output.append(command ? command_help(command->spec) : general_help(all)));
    return 0;
  }
  const auto* command = find(word);
  if (command == nullptr) return unknown_command(all, word);
  return run_command(*command, words, output);
}

int run_main(std::span<const std::string> words) {
  Output output(STDOUT_FILENO);
  auto code = run(words, output);
  if (code) {
    const auto flushed = output.flush();
    if (!flushed) code = flushed.error();
  }
  if (code) return *code;
  if (output.is_reader_gone()) return kReaderGoneExit;
  // One line, whatever a file name or a peer put into it.
  fmt::print(stderr, "muster: {}\n", printable(code.error().message));
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
