#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/output.h"
#include "config/config.h"
#include "terminal/terminal_info.h"

namespace muster {

/// A flag that belongs to one run and is no setting: it stands in no file and no variable.
struct RunFlag {
  std::string name;        // "--out"
  std::string value_name;  // empty: a switch
  std::string help;
  std::string short_name = {};  // "-o"
  bool may_repeat = false;      // each value counts: `Arguments::values`
  // Words behind the value that are more of it: "--env A=1 B=2". Only with may_repeat.
  bool (*is_more)(std::string_view word) = nullptr;
  // The value may be left out: "--mmr". A word behind it is its value only where this says so.
  bool (*is_value)(std::string_view word) = nullptr;
  std::vector<std::string> choices = {};  // the values there are, in the order of help; empty: any
};

/// Flags that stand together in the help text.
struct FlagGroup {
  std::string title;
  std::vector<SettingId> settings;
  std::vector<RunFlag> flags = {};
};

/// What a word of a command line is, which decides what a shell offers in its place.
enum class WordKind : std::uint8_t {
  Text,
  File,
  Folder,
  Model,     // that can be run: of the local hub cache, or a folder
  AnyModel,  // the same, those of the catalogue, or a file
  HubModel,  // an id at the hub
  Device,    // "cuda:1"
  Devices,   // "cuda:0,cuda:1", "2xcpu"
  Machine,   // "here", "sim:8xH100-80G", a file
};

/// A word that says what a command is to do: the `drain` of `muster ctl drain cuda:1`.
struct Verb {
  std::string name;
  std::string help;
  WordKind then = WordKind::Text;  // the words behind it
};

/// What a command takes.
struct CommandSpec {
  std::string name;
  std::string summary;  // one line for `muster --help`
  std::string usage;    // "MODEL INPUT... -o OUT"
  std::size_t positional_least = 0;
  std::size_t positional_most = 0;
  std::vector<FlagGroup> groups;     // those of `common_flags` are added
  std::string examples;              // lines indented by two, and paragraphs: `examples_text`
  bool reads_foreign_names = false;  // variables of other programs count, too: foreign_names.h
  std::vector<Verb> verbs = {};      // what the first word may be; empty: it is no verb
  // What the words are, the last kind for all that follow; after a verb, its own.
  std::vector<WordKind> words = {};
  /// What counts behind one of `verbs`, for its help; nullptr: all of this.
  CommandSpec (*of_verb)(std::string_view verb) = nullptr;
};

/// The words of a command line, sorted out.
struct Arguments {
  std::vector<std::string> positionals;
  std::vector<GivenValue> settings;
  std::map<std::string, std::string, std::less<>> flags;  // "--out" -> value; a switch -> ""
  std::map<std::string, std::vector<std::string>, std::less<>> repeated;  // in the order given
  bool wants_help = false;

  bool has(std::string_view flag) const { return flags.find(flag) != flags.end(); }
  std::optional<std::string> value(std::string_view flag) const {
    const auto found = flags.find(flag);
    return found == flags.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<std::string> values(std::string_view flag) const {
    const auto found = repeated.find(flag);
    return found == repeated.end() ? std::vector<std::string>{} : found->second;
  }
};

/// What a command works with.
struct CommandContext {
  const Arguments& arguments;
  Config& config;
  const Clock& clock;
  Output& output;                  // standard output
  std::vector<std::string> words;  // the whole command line, for "go on with: …"
  ConfigSources sources = {};      // what `config` was read from, to read it again
  ColorChoice color = ColorChoice::Auto;

  /// What is at the other end of a descriptor, with the colours that were asked for.
  TerminalInfo terminal(int fd) const { return inspect_terminal(fd, color); }
};

/// A command: its spec, and what it does. The value is the exit code.
struct Command {
  CommandSpec spec;
  Result<int> (*run)(const CommandContext&);
};

/// Every command, in the order of `muster --help`.
std::vector<Command> all_commands();

Command embed_command();
Command pull_command();
Command search_command();
Command generate_command();
Command chat_command();
Command tokenize_command();
Command plan_command();
Command estimate_command();
Command devices_command();
Command top_command();
Command monitor_command();
Command doctor_command();
Command serve_command();
Command ctl_command();
Command config_command();
Command keys_command();
Command deploy_command();
Command completion_command();
Command manual_command();
Command bench_command();

}  // namespace muster
