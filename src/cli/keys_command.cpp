// Keys are random and shown once; the file holds their hash, so a copy of the file lets nobody in.
// Every change is made under a lock and by replacing the file as a whole, because a server may read
// it at any moment. A new key is checked by parsing the entry that would be written: what is
// written can be read.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "base/text.h"
#include "base/wall_clock.h"
#include "cli/command.h"
#include "server/api_keys.h"
#include "server/keys_file.h"
#include "terminal/table.h"
#include "terminal/terminal_info.h"

namespace muster {
namespace {

CommandSpec keys_spec() {
  return {
      .name = "keys",
      .summary = "make, list and remove the API keys of a server",
      .usage = "new NAME | list | remove NAME",
      .positional_least = 1,
      .positional_most = 2,
      .groups = {{"Keys",
                  {},
                  {{"--file", "FILE", "the keys file; `new` without it only prints the entry"},
                   {.name = "--scope",
                    .value_name = "SCOPE",
                    .help = "of `new`: embed, read or admin; again for more (default: embed)",
                    .may_repeat = true,
                    .choices = {"embed", "read", "admin"}},
                   {"--expires", "DAY",
                    "of `new`: the first day on which it is refused, as 2027-01-01"},
                   {"--json", "", "of `list`: an array of objects"}}}},
      .examples =
          "  KEY=$(muster keys new ci --file keys.yaml)\n"
          "  muster keys new operator --scope read --scope admin --file keys.yaml\n"
          "  muster keys list --json --file keys.yaml\n"
          "  muster keys remove ci --file keys.yaml\n"
          "\n"
          "The key is shown once; the file holds its SHA-256. A running server reads the\n"
          "file again on SIGHUP. `remove` writes the file anew, without its comments.\n",
      .verbs = {{"new", "make a key and print it"},
                {"list", "the keys of the file, without the keys themselves"},
                {"remove", "take a key out of the file"}},
  };
}

Error wrong_use(std::string message) {
  return Error{ErrorKind::InvalidArgument, std::move(message)};
}

// By way of the file's own form, so that what is written can be read.
Result<ApiKey> asked_key(const Arguments& arguments, const std::string& name) {
  ApiKey draft{.name = name};
  const auto scopes = arguments.values("--scope");
  if (!scopes.empty()) draft.scopes = {};
  for (const auto& word : scopes) {
    const auto scope = MUSTER_TRY(parse_key_scope(word));
    draft.scopes[static_cast<std::size_t>(scope)] = true;
  }
  std::string entry = "keys:\n" + keys_file_entry(draft);
  if (const auto day = arguments.value("--expires")) entry += "    expires: \"" + *day + "\"\n";
  auto keys = parse_api_keys("new key", entry);
  if (!keys) {
    // What comes before the last ": " of the place is no file of theirs.
    const auto& message = keys.error().message;
    return wrong_use(message.substr(message.find(": ") + 2));
  }
  const auto& expires = keys->front().expires_unix_seconds;
  if (expires && *expires <= unix_seconds()) {
    return wrong_use(
        fmt::format("--expires {} is past: the key begins to be refused with that day, "
                    "by UTC, and would never be accepted",
                    day_text(*expires)));
  }
  return keys->front();
}

Result<int> make_key(const CommandContext& context, const std::string& name) {
  auto key = MUSTER_TRY(asked_key(context.arguments, name));
  // Made only after the flags were checked.
  const auto secret = make_api_key();
  key.sha256 = sha256(secret);
  const auto file = context.arguments.value("--file");
  if (!file) {
    MUSTER_TRY(context.output.append(fmt::format("{}\n\nkeys:\n{}", secret, keys_file_entry(key))));
    return 0;
  }
  const std::filesystem::path path(*file);
  const auto lock = MUSTER_TRY(KeysFileLock::take(path));
  std::error_code ignored;
  std::string text;
  if (std::filesystem::exists(path, ignored)) text = MUSTER_TRY(read_keys_file(path));
  const auto changed = MUSTER_TRY(with_api_key(*file, text, key));
  // Shown first: a key in the file that nobody has seen could only be removed by its name.
  MUSTER_TRY(context.output.append(secret + "\n"));
  MUSTER_TRY(context.output.flush());
  MUSTER_TRY(write_keys_file(path, changed));
  fmt::print(stderr, "{} is in {}; its key is not shown again\n", name, *file);
  return 0;
}

std::vector<std::string> scope_names(const ApiKey& key) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kKeyScopeCount; ++i) {
    if (key.scopes[i]) names.emplace_back(key_scope_name(static_cast<KeyScope>(i)));
  }
  return names;
}

// Hashes are left out: nothing that a program does with the list needs them.
std::string keys_json(const std::vector<ApiKey>& keys) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  const double now = unix_seconds();
  for (const auto& key : keys) {
    const auto& expires = key.expires_unix_seconds;
    list.push_back({{"name", key.name},
                    {"scopes", scope_names(key)},
                    {"requests_per_minute", or_null(key.limits.requests_per_minute)},
                    {"tokens_per_minute", or_null(key.limits.tokens_per_minute)},
                    {"requests_at_once", or_null(key.limits.requests_at_once)},
                    {"expires", expires ? Json(day_text(*expires)) : Json(nullptr)},
                    {"is_expired", expires && *expires <= now}});
  }
  return list.dump() + "\n";
}

Result<int> list_keys(const CommandContext& context, const std::string& file) {
  const auto text = MUSTER_TRY(read_keys_file(file));
  const auto keys = MUSTER_TRY(parse_api_keys(file, text));
  if (context.arguments.has("--json")) {
    MUSTER_TRY(context.output.append(keys_json(keys)));
    return 0;
  }
  Table table({{"name"},
               {"scopes"},
               {.title = "requests/min", .align = Align::Right, .leaves = 1},
               {.title = "tokens/min", .align = Align::Right, .leaves = 2},
               {.title = "at once", .align = Align::Right, .leaves = 3},
               {"expires"}});
  const auto shown = [](const auto& limit) { return limit ? fmt::format("{}", *limit) : "-"; };
  for (const auto& key : keys) {
    table.add_row({key.name, fmt::format("{}", fmt::join(scope_names(key), " ")),
                   shown(key.limits.requests_per_minute), shown(key.limits.tokens_per_minute),
                   shown(key.limits.requests_at_once),
                   key.expires_unix_seconds ? day_text(*key.expires_unix_seconds) : "never"});
  }
  const auto terminal = context.terminal(STDOUT_FILENO);
  MUSTER_TRY(context.output.append(table.render(terminal.width, terminal.has_color)));
  return 0;
}

Result<int> run_keys(const CommandContext& context) {
  const auto& words = context.arguments.positionals;
  const auto& verb = words.front();
  const std::vector<std::string> verbs{"new", "list", "remove"};
  if (std::find(verbs.begin(), verbs.end(), verb) == verbs.end()) {
    const auto nearest = nearest_name(verb, verbs);
    return wrong_use(fmt::format(
        "unknown word: {}; {}", verb,
        nearest ? fmt::format("did you mean {}?", *nearest) : "there are new, list and remove"));
  }
  const bool needs_name = verb != "list";
  if (needs_name != (words.size() == 2)) {
    return wrong_use(
        fmt::format("muster keys {} takes {}", verb, needs_name ? "a name" : "no name"));
  }
  if (verb != "list" && context.arguments.has("--json")) {
    return wrong_use("--json is of `muster keys list` alone");
  }
  if (verb == "new") return make_key(context, words[1]);
  for (const auto* flag : {"--scope", "--expires"}) {
    if (context.arguments.has(flag) || !context.arguments.values(flag).empty()) {
      return wrong_use(fmt::format("{} is of `muster keys new` alone", flag));
    }
  }
  const auto file = context.arguments.value("--file");
  if (!file) {
    return wrong_use(
        fmt::format("muster keys {} needs the keys file, such as --file keys.yaml", verb));
  }
  if (verb == "list") return list_keys(context, *file);
  MUSTER_TRY(read_keys_file(*file));  // where there is none, no lock is left beside it
  const auto lock = MUSTER_TRY(KeysFileLock::take(*file));
  const auto text = MUSTER_TRY(read_keys_file(*file));
  const auto changed = MUSTER_TRY(without_api_key(*file, text, words[1]));
  MUSTER_TRY(write_keys_file(*file, changed));
  fmt::print(stderr, "{} is no longer in {}\n", words[1], *file);
  return 0;
}

}  // namespace

Command keys_command() { return {keys_spec(), run_keys}; }

}  // namespace muster
