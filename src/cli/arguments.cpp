// A command states its flags once, as settings and run flags; parsing, help, completion and the
// manual all read that statement. Every form of a flag becomes one FlagMeaning: `--name`, an alias,
// `--no-name` of a switch, a short name. An error names the nearest flag, or the one of ours that a
// flag of another server stands for. Words that can only belong to the value before them are taken
// with it, so that a list may be written with blanks.

#include "cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "config/schema.h"
#include "hw/device_names.h"

namespace muster {
namespace {

constexpr std::string_view kColorFlag = "--color";

// A switch has a form with "no-", so that a flag can undo what a file or a variable has set.
void add_setting(const Setting& setting, std::vector<FlagMeaning>& meanings) {
  const bool is_switch = setting.type == SettingType::Switch;
  std::vector<std::string> names{std::string(setting.name)};
  names.insert(names.end(), setting.aliases.begin(), setting.aliases.end());
  for (const auto& name : names) {
    meanings.push_back({flag_of(name), &setting, nullptr, !is_switch, false});
    if (is_switch)
      meanings.push_back({flag_of(fmt::format("no_{}", name)), &setting, nullptr, false, true});
  }
}

void add_flag(const RunFlag& flag, std::vector<FlagMeaning>& meanings) {
  const bool takes_value = !flag.value_name.empty();
  meanings.push_back({flag.name, nullptr, &flag, takes_value, false});
  if (!flag.short_name.empty()) {
    meanings.push_back({flag.short_name, nullptr, &flag, takes_value, false});
  }
}

// What servers of others call a flag of ours.
constexpr std::pair<std::string_view, std::string_view> kFlagsOfOthers[] = {
    {"--host", "--listen"},           {"--port", "--listen"},
    {"--uds", "--unix-socket"},       {"--ssl-keyfile", "--tls-key"},
    {"--ssl-certfile", "--tls-cert"}, {"--ssl-ca-certs", "--tls-client-ca"},
    {"--dtype", "--precision"},       {"--url", "--server"}};

// The flag that is meant: by a habit of other programs, the one most like `word`, or the one with
// which it begins: "--api-type" is --api.
std::optional<std::string> nearest_flag(const CommandSpec& spec, const std::string& word) {
  // A single letter is like every other one.
  constexpr std::size_t kShortFlag = 2;
  if (word.size() <= kShortFlag) return std::nullopt;
  const auto names = flag_names(spec);
  for (const auto& [theirs, ours] : kFlagsOfOthers) {
    if (word == theirs && std::find(names.begin(), names.end(), ours) != names.end()) {
      return std::string(ours);
    }
  }
  if (auto nearest = nearest_name(word, names)) return nearest;
  std::optional<std::string> longest;
  for (const auto& name : names) {
    const bool is_beginning = name.starts_with("--") && word.starts_with(name + "-");
    if (is_beginning && (!longest || name.size() > longest->size())) longest = name;
  }
  return longest;
}

Error unknown_flag(const CommandSpec& spec, const std::string& word) {
  auto message = fmt::format("unknown flag of muster {}: {}", spec.name, word);
  if (const auto nearest = nearest_flag(spec, word)) {
    message += fmt::format("; did you mean {}?", *nearest);
  } else {
    message += fmt::format("; `muster {} --help` lists them", spec.name);
  }
  return Error{ErrorKind::InvalidArgument, std::move(message)};
}

Status keep(const FlagMeaning& meaning, std::string value, Arguments& arguments) {
  if (meaning.setting != nullptr) {
    if (meaning.setting->type == SettingType::Switch) value = meaning.is_negated ? "false" : "true";
    if (meaning.setting->type == SettingType::Files) {
      // "--search a.npy --search b.npy" are both.
      for (auto& given : arguments.settings) {
        if (given.id != meaning.setting->id) continue;
        given.value += "," + value;
        return Done{};
      }
    }
    arguments.settings.push_back({meaning.setting->id, std::move(value), meaning.name});
    return Done{};
  }
  if (meaning.flag->name == "--help") arguments.wants_help = true;
  if (meaning.flag->may_repeat) {
    arguments.repeated[meaning.flag->name].push_back(std::move(value));
    return Done{};
  }
  // The same value twice is no contradiction: aliases in scripts add flags that are there already.
  const auto [place, is_new] = arguments.flags.emplace(meaning.flag->name, value);
  if (!is_new && place->second != value) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} is given twice: {} and {}", meaning.name, place->second, value)};
  }
  return Done{};
}

// A word that begins with a dash: "--out=x" and "-ox" have the value in themselves.
struct FlagWord {
  std::string name;
  std::optional<std::string> value = {};
};

// A short flag may have its value attached, as "-ofile" or "-o=file"; a long one needs the "=".
FlagWord parse_flag_word(const std::string& word) {
  constexpr std::size_t kShortSize = 2;
  if (!word.starts_with("--")) {
    if (word.size() <= kShortSize) return {word};
    const bool has_equals = word[kShortSize] == '=';
    return {word.substr(0, kShortSize), word.substr(kShortSize + (has_equals ? 1 : 0))};
  }
  const auto equals = word.find('=');
  if (equals == std::string::npos) return {word};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

// "--devices cuda:0 cuda:1", "--env A=1 B=2": a word behind the value that can only be more of it.
bool is_more_of(const FlagMeaning& meaning, const std::string& word) {
  if (word.starts_with('-')) return false;
  if (meaning.setting != nullptr) {
    // "cpu" and "auto" may be somebody's file or question; what has a number is a device.
    return meaning.setting->id == SettingId::Devices && is_device_name_form(word) &&
           !word.starts_with("sim:") && word.find_first_of("0123456789") != std::string::npos;
  }
  return meaning.flag->is_more != nullptr && meaning.flag->is_more(word);
}

// "--mmr" alone, and not "--mmr 0.7".
bool may_lack_value(const FlagMeaning& meaning, std::span<const std::string> behind) {
  if (meaning.flag == nullptr || meaning.flag->is_value == nullptr) return false;
  return behind.empty() || !meaning.flag->is_value(behind.front());
}

// Takes the flag at `words[at]` and its value; gives the place of the next word.
Result<std::size_t> take_flag(const CommandSpec& spec, const std::vector<FlagMeaning>& meanings,
                              std::span<const std::string> words, std::size_t at,
                              Arguments& arguments) {
  const auto& word = words[at];
  const auto given = parse_flag_word(word);
  const auto& name = given.name;
  const auto found = std::find_if(meanings.begin(), meanings.end(),
                                  [&](const FlagMeaning& meaning) { return meaning.name == name; });
  if (found == meanings.end()) return unknown_flag(spec, word.starts_with("--") ? name : word);

  std::string value;
  if (given.value) {
    if (!found->takes_value) {
      return Error{ErrorKind::InvalidArgument, fmt::format("{} takes no value: {}", name, word)};
    }
    value = *given.value;
  } else if (may_lack_value(*found, words.subspan(at + 1))) {
    value = "";
  } else if (found->takes_value) {
    ++at;
    // A value may begin with one dash (a negative number, "-" for standard input), but not with
    // two.
    if (at == words.size() || words[at].starts_with("--")) {
      return Error{ErrorKind::InvalidArgument, fmt::format("{} needs a value", name)};
    }
    value = words[at];
  }
  for (++at; at < words.size() && found->takes_value && is_more_of(*found, words[at]); ++at) {
    if (found->setting == nullptr) {
      MUSTER_TRY(keep(*found, std::exchange(value, words[at]), arguments));
    } else {
      value += "," + words[at];
    }
  }
  MUSTER_TRY(keep(*found, std::move(value), arguments));
  return at;
}

Status check_count(const CommandSpec& spec, const Arguments& arguments) {
  const auto count = arguments.positionals.size();
  if (count < spec.positional_least) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("something is missing; usage: muster {} {}", spec.name, spec.usage)};
  }
  if (count > spec.positional_most) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("one word too many: \"{}\"; usage: muster {} {}",
                             arguments.positionals[spec.positional_most], spec.name, spec.usage)};
  }
  return Done{};
}

}  // namespace

std::span<const RunFlag> common_flags() {
  static const std::vector<RunFlag> flags{
      {.name = std::string(kColorFlag),
       .value_name = "WHEN",
       .help = "colours: auto, always or never (default: auto)",
       .choices = {"auto", "always", "never"}},
      {"--config", "FILE", "settings from this file instead of ./muster.yaml"},
      {"--help", "", "this text", "-h"},
  };
  return flags;
}

std::vector<FlagMeaning> flag_meanings(const CommandSpec& spec) {
  std::vector<FlagMeaning> meanings;
  for (const auto& group : spec.groups) {
    for (const auto id : group.settings) add_setting(setting_of(id), meanings);
    for (const auto& flag : group.flags) add_flag(flag, meanings);
  }
  for (const auto& flag : common_flags()) add_flag(flag, meanings);
  return meanings;
}

Result<Arguments> parse_arguments(const CommandSpec& spec, std::span<const std::string> words) {
  const auto meanings = flag_meanings(spec);
  Arguments arguments;
  bool flags_ended = false;
  for (std::size_t at = 0; at < words.size();) {
    const auto& word = words[at];
    if (flags_ended || word.size() < 2 || word.front() != '-') {
      arguments.positionals.push_back(word);
      ++at;
    } else if (word == "--") {
      flags_ended = true;
      ++at;
    } else {
      at = MUSTER_TRY(take_flag(spec, meanings, words, at, arguments));
    }
  }
  if (!arguments.wants_help) MUSTER_TRY(check_count(spec, arguments));
  const auto color = arguments.value(kColorFlag);
  if (color && !parse_color_choice(*color)) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} must be auto, always or never: \"{}\"", kColorFlag, *color)};
  }
  return arguments;
}

// Read apart from everything else, since an error of parsing is itself shown in the colour that was
// asked for.
ColorChoice color_choice_of(std::span<const std::string> words) {
  auto choice = ColorChoice::Auto;
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string_view word = words[i];
    std::string_view value;
    if (word == kColorFlag && i + 1 < words.size()) value = words[i + 1];
    if (word.starts_with(kColorFlag) && word.substr(kColorFlag.size()).starts_with('=')) {
      value = word.substr(kColorFlag.size() + 1);
    }
    choice = parse_color_choice(value).value_or(choice);
  }
  return choice;
}

std::vector<std::string> flag_names(const CommandSpec& spec) {
  std::vector<std::string> names;
  for (const auto& meaning : flag_meanings(spec)) names.push_back(meaning.name);
  return names;
}

}  // namespace muster
