// What a shell may offer for the last word of a command line. The words before it are read as
// `parse_arguments` reads them, but nothing is refused: what is there may be half of something.
#include "cli/completion/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "cli/arguments.h"
#include "cli/completion/known_words.h"

namespace muster {
namespace {

// Where the last word stands, as the words before it decide.
struct Place {
  const FlagMeaning* flag = nullptr;  // its value is wanted
  bool is_behind_dashes = false;      // behind "--"
  std::vector<std::string> words;     // before it, no flags
  std::set<std::string> flags;        // before it, by their first names
};

std::string first_name(const FlagMeaning& meaning) {
  return meaning.flag != nullptr ? meaning.flag->name : std::string(meaning.setting->name);
}

const FlagMeaning* find_flag(const std::vector<FlagMeaning>& meanings, std::string_view name) {
  const auto found = std::find_if(meanings.begin(), meanings.end(),
                                  [name](const auto& meaning) { return meaning.name == name; });
  return found == meanings.end() ? nullptr : &*found;
}

Place place_of(const std::vector<FlagMeaning>& meanings, std::span<const std::string> before) {
  Place place;
  for (const auto& word : before) {
    if (std::exchange(place.flag, nullptr) != nullptr) continue;
    if (place.is_behind_dashes || word.size() < 2 || word.front() != '-') {
      place.words.push_back(word);
    } else if (word == "--") {
      place.is_behind_dashes = true;
    } else if (const auto* flag = find_flag(meanings, word.substr(0, word.find('=')))) {
      place.flags.insert(first_name(*flag));
      if (flag->takes_value && word.find('=') == word.npos) place.flag = flag;
    }
  }
  return place;
}

// What a value is, by the word that stands for it in the help text.
WordKind kind_of_value(const FlagMeaning& meaning) {
  if (meaning.setting != nullptr && meaning.setting->id == SettingId::Devices) {
    return WordKind::Devices;
  }
  if (meaning.setting != nullptr && meaning.setting->id == SettingId::Models) {
    return WordKind::Model;
  }
  const std::string_view flag = meaning.name;
  const std::string_view value =
      meaning.setting != nullptr ? meaning.setting->value_name : meaning.flag->value_name;
  if (flag == "--machine") return WordKind::Machine;
  if (flag == "--devices") return WordKind::Devices;
  if (value == "FILE" || value == "OUT" || value == "PATH") return WordKind::File;
  if (value == "DIR") return WordKind::Folder;
  if (value == "MODEL") return WordKind::AnyModel;
  return WordKind::Text;
}

void add_values(const FlagMeaning& meaning, std::string_view begun, std::string_view head,
                const CompletionSources& sources, Candidates& out) {
  const auto& choices =
      meaning.setting != nullptr ? meaning.setting->choices : meaning.flag->choices;
  if (choices.empty()) {
    add_words_of(kind_of_value(meaning), begun, head, sources, out);
  } else if (meaning.flag != nullptr && meaning.flag->value_name == "LIST") {
    add_list_candidates(plain_candidates(choices), begun, head, out);
  } else {
    add_candidates(plain_candidates(choices), begun, head, out);
  }
}

void add_flags(const std::vector<FlagMeaning>& meanings, const Place& place, std::string_view begun,
               Candidates& out) {
  for (const auto& meaning : meanings) {
    const bool counts_again = meaning.flag != nullptr && meaning.flag->may_repeat;
    if (!meaning.name.starts_with(begun)) continue;
    if (!counts_again && place.flags.count(first_name(meaning)) > 0) continue;
    // Other programs' names of a setting are understood, but not offered.
    const bool is_alias = meaning.setting != nullptr &&
                          meaning.name != flag_of(meaning.setting->name) && !meaning.is_negated;
    if (is_alias) continue;
    const std::string_view help =
        meaning.setting != nullptr ? meaning.setting->help : meaning.flag->help;
    out.words.push_back(
        {meaning.name, meaning.is_negated ? fmt::format("not: {}", help) : std::string(help)});
  }
}

void add_positional(const CommandSpec& spec, const Place& place, const std::string& word,
                    const CompletionSources& sources, Candidates& out) {
  const auto at = place.words.size();
  if (!spec.verbs.empty() && at == 0) {
    for (const auto& verb : spec.verbs) {
      if (verb.name.starts_with(word)) out.words.push_back({verb.name, verb.help});
    }
    return;
  }
  if (!spec.verbs.empty()) {
    for (const auto& verb : spec.verbs) {
      if (verb.name == place.words.front()) add_words_of(verb.then, word, "", sources, out);
    }
    return;
  }
  if (at >= spec.positional_most) return;
  if (!spec.words.empty()) {
    add_words_of(spec.words[std::min(at, spec.words.size() - 1)], word, "", sources, out);
  } else if (at == 0 && spec.usage.starts_with("MODEL")) {
    // As with the value of a flag, the word of the help text says what it is.
    add_words_of(WordKind::Model, word, "", sources, out);
  }
}

Candidates of_command(const CommandSpec& spec, std::span<const std::string> before,
                      const std::string& word, const CompletionSources& sources) {
  Candidates out;
  const auto meanings = flag_meanings(spec);
  const auto place = place_of(meanings, before);
  const auto equals = word.find('=');
  if (place.flag != nullptr) {
    add_values(*place.flag, word, "", sources, out);
  } else if (!place.is_behind_dashes && word.starts_with("--") && equals != word.npos) {
    const auto* flag = find_flag(meanings, word.substr(0, equals));
    const auto head = word.substr(0, equals + 1);
    if (flag != nullptr) add_values(*flag, word.substr(equals + 1), head, sources, out);
  } else if (!place.is_behind_dashes && word.starts_with('-')) {
    add_flags(meanings, place, word, out);
  } else {
    add_positional(spec, place, word, sources, out);
  }
  return out;
}

std::vector<Candidate> command_names(std::span<const Command> commands) {
  std::vector<Candidate> all;
  for (const auto& command : commands) all.push_back({command.spec.name, command.spec.summary});
  return all;
}

// A name may come from several places: the catalogue and the cache.
void drop_repeated(std::vector<Candidate>& words) {
  std::set<std::string> seen;
  std::erase_if(words, [&](const Candidate& one) { return !seen.insert(one.text).second; });
}

}  // namespace

Candidates candidates(std::span<const Command> commands, std::span<const std::string> words,
                      const CompletionSources& sources) {
  Candidates out;
  if (words.empty()) return out;
  const auto& word = words.back();
  const auto& name = words.front();
  if (words.size() == 1) {
    auto all = command_names(commands);
    all.push_back({"help", "explain a command"});
    if (word.starts_with('-')) all = {{"--help", "this text"}, {"--version", "which muster it is"}};
    add_candidates(all, word, "", out);
    return out;
  }
  if (name == "help") {
    if (words.size() == 2) add_candidates(command_names(commands), word, "", out);
    return out;
  }
  for (const auto& command : commands) {
    if (command.spec.name != name) continue;
    out = of_command(command.spec, words.subspan(1, words.size() - 2), word, sources);
  }
  drop_repeated(out.words);
  return out;
}

}  // namespace muster
