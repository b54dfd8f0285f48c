// Turns variables that other programs read (CUDA_VISIBLE_DEVICES-like lists, GPU_COUNT,
// EMBEDDING_BATCH_SIZE, ...) into settings or into one warning.
// A variable has one of three outcomes: it becomes a setting, it asks for what happens anyhow,
// or it asks for what is not done. The last kind is gathered by reason into one warning, so that
// a container with twenty such variables starts with one line about them. A value that makes no
// sense is an error even so.

#include "config/foreign_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "base/text.h"
#include "config/foreign_gpus.h"

namespace muster {
namespace {

// The meaning of a variable: a value, none where muster does so anyhow, or unmet.
struct OwnMeaning {
  std::optional<std::string> value = {};
  bool is_met = true;
};

// An exact name wins over a row that ends in "*", wherever the two stand in the table.
const ForeignName* row_of(std::string_view name) {
  const ForeignName* by_beginning = nullptr;
  for (const auto& row : foreign_names()) {
    if (row.name == name) return &row;
    if (row.name.ends_with('*') && name.starts_with(row.name.substr(0, row.name.size() - 1))) {
      by_beginning = &row;
    }
  }
  return by_beginning;
}

std::vector<FoundForeign> find_all(const std::vector<std::string>& environment) {
  std::vector<FoundForeign> all;
  for (const auto& entry : environment) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos || equals + 1 == entry.size()) continue;
    auto name = entry.substr(0, equals);
    if (const auto* row = row_of(name)) {
      all.push_back({row, std::move(name), entry.substr(equals + 1)});
    }
  }
  return all;
}

// "YES" -> "true", "Warning" -> "warning".
std::string plain_word(std::string_view value) {
  std::string word(trim(value));
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto* yes : {"1", "yes", "on"}) {
    if (word == yes) return "true";
  }
  for (const auto* no : {"0", "no", "off"}) {
    if (word == no) return "false";
  }
  return word;
}

bool is_switch(const ForeignName& row) {
  const auto& word = row.words.front().theirs;
  return word == "true" || word == "false";
}

const ForeignWord* find_word(const FoundForeign& found) {
  const auto word = plain_word(found.value);
  for (const auto& candidate : found.row->words) {
    if (candidate.theirs == word) return &candidate;
  }
  return nullptr;
}

// Words that are known but not met are left out of the message: it should list only what helps.
Result<OwnMeaning> from_word(const FoundForeign& found) {
  if (const auto* word = find_word(found)) {
    if (!word->is_met) return OwnMeaning{.is_met = false};
    return word->ours.empty() ? OwnMeaning{} : OwnMeaning{.value = std::string(word->ours)};
  }
  if (is_switch(*found.row)) return invalid_foreign(found.name, "true or false", found.value);
  std::vector<std::string_view> known;
  for (const auto& word : found.row->words) {
    if (word.is_met) known.push_back(word.theirs);
  }
  return invalid_foreign(found.name, fmt::format("one of {}", fmt::join(known, ", ")), found.value);
}

Result<double> number(const FoundForeign& found, std::string_view must) {
  const auto text = trim(found.value);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) ||
      value < 0) {
    return invalid_foreign(found.name, must, found.value);
  }
  return value;
}

// What one variable says by itself.
Result<OwnMeaning> meaning_of(const FoundForeign& found) {
  switch (found.row->use) {
    case ForeignUse::Value: {
      const auto* word = find_word(found);
      return word != nullptr && !word->is_met ? OwnMeaning{.is_met = false}
                                              : OwnMeaning{.value = found.value};
    }
    case ForeignUse::Word:
      return from_word(found);
    case ForeignUse::Percent: {
      const auto percent = MUSTER_TRY(number(found, "a percentage above 0, at most 100"));
      if (percent == 0 || percent > 100) {
        return invalid_foreign(found.name, "a percentage above 0, at most 100", found.value);
      }
      return OwnMeaning{.value = fmt::format("{}", percent / 100)};
    }
    case ForeignUse::Seconds: {
      const auto seconds = MUSTER_TRY(number(found, "a number of seconds"));
      return OwnMeaning{.value = fmt::format("{:.0f}ms", seconds * 1000)};
    }
    case ForeignUse::GpuIds: {
      auto devices = MUSTER_TRY(foreign_gpu_list(found));
      return OwnMeaning{.value = std::move(devices)};
    }
    case ForeignUse::GpuCount:
    case ForeignUse::PrimaryGpu:
    case ForeignUse::SecondaryGpus:
      return OwnMeaning{};  // see `chosen_gpus`
    case ForeignUse::Unmet:
      break;
  }
  return OwnMeaning{.is_met = false};
}

}  // namespace

std::vector<SetForeignName> foreign_names_in(const std::vector<std::string>& environment) {
  std::vector<SetForeignName> names;
  for (auto& found : find_all(environment)) names.push_back({std::move(found.name), found.row});
  return names;
}

// First each variable by itself, then those that describe the GPUs together.
Result<EnvironmentValues> read_foreign_environment(const std::vector<std::string>& environment) {
  auto all = find_all(environment);
  // The environment has no order that means something; the table has.
  std::stable_sort(all.begin(), all.end(), [](const FoundForeign& one, const FoundForeign& other) {
    return one.row < other.row;
  });
  EnvironmentValues values;
  UnmetNames unmet;
  for (const auto& found : all) {
    auto meaning = MUSTER_TRY(meaning_of(found));
    if (!meaning.is_met) {
      const bool is_whole = found.row->use == ForeignUse::Unmet;
      unmet.add(found.row->reason,
                is_whole ? found.name : fmt::format("{}={}", found.name, found.value));
    } else if (meaning.value) {
      values.given.push_back({*found.row->setting, std::move(*meaning.value), found.name});
    }
  }
  if (auto gpus = MUSTER_TRY(chosen_gpus(all, unmet))) values.given.push_back(std::move(*gpus));
  values.warnings = unmet.warnings();
  return values;
}

}  // namespace muster
