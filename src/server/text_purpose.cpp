// What texts are for, as the prompts of a model.

#include "server/text_purpose.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "server/call_fields.h"

namespace muster {
namespace {

struct Purpose {
  std::string_view word;
  std::array<std::string_view, 4> prompts;  // the empty ones are none
};

constexpr std::array kPurposes{
    Purpose{"search_query", {"query"}},
    Purpose{"search_document", {"document", "passage", "corpus"}},
    Purpose{"query", {"query"}},
    Purpose{"passage", {"document", "passage", "corpus"}},
    Purpose{"retrieval.query", {"retrieval.query", "query"}},
    Purpose{"retrieval.passage", {"retrieval.passage", "document", "passage", "corpus"}},
    Purpose{"classification", {"classification"}},
    Purpose{"clustering", {"clustering"}},
    Purpose{"separation", {"separation", "clustering"}},
    Purpose{"text-matching", {"text-matching"}},
};

}  // namespace

std::optional<std::vector<std::string>> prompts_for(std::string_view purpose) {
  for (const Purpose& row : kPurposes) {
    if (row.word != purpose) continue;
    std::vector<std::string> prompts;
    for (const std::string_view prompt : row.prompts) {
      if (!prompt.empty()) prompts.emplace_back(prompt);
    }
    return prompts;
  }
  return std::nullopt;
}

BodyField purpose_field(std::string_view name, std::vector<std::string>& prompts) {
  return {name, [name, &prompts](JsonValue& value) -> ApiStatus {
            const std::string word = MUSTER_TRY(read_text(value, name, kNameBytesMost));
            auto found = prompts_for(word);
            if (found) {
              prompts = *std::move(found);
              return Done{};
            }
            std::vector<std::string> words;
            for (const Purpose& row : kPurposes) words.emplace_back(row.word);
            const auto nearest = nearest_name(word, words);
            return wrong_field(name, "invalid_value",
                               fmt::format("Invalid '{}': expected {}.", name,
                                           nearest ? "'" + *nearest + "', perhaps"
                                                   : fmt::format("{}", fmt::join(words, ", "))));
          }};
}

}  // namespace muster
