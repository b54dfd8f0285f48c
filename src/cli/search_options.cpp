// Flags and words of `muster search`. Candidates for marginal relevance grow with the hits that are
// wanted, so that there is something to choose among; all counts are bounded, because hits are held
// in memory.

#include "cli/search_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cli/embed_options.h"
#include "dataset/field_table.h"
#include "dataset/text_reader.h"

namespace muster {
namespace {

constexpr std::size_t kQueriesMost = 1000;
constexpr std::size_t kCountMost = 10'000;  // of hits, and of candidates
constexpr double kLambdaDefault = 0.5;      // as near to the question as far from each other

// Of so many hits each may choose; what others that rank by marginal relevance take is 4 to 5.
constexpr std::size_t kCandidatesOfAHit = 5;

bool is_number(std::string_view word) { return number_of_text(word).has_value(); }

Result<std::size_t> count_of(const Arguments& arguments, std::string_view flag, std::size_t least,
                             std::size_t fallback) {
  const auto text = arguments.value(flag);
  if (!text) return fallback;
  std::size_t count = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), count);
  const bool is_whole = code == std::errc{} && end == text->data() + text->size();
  if (is_whole && count >= least && count <= kCountMost) return count;
  return Error{ErrorKind::InvalidArgument, fmt::format("{} must be a whole number from {} to {}: "
                                                       "\"{}\"",
                                                       flag, least, kCountMost, *text)};
}

Result<double> number_of(std::string_view flag, const std::string& text, double least,
                         double most) {
  const auto number = number_of_text(text);
  if (number && *number >= least && *number <= most) return *number;
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{} must be a number from {} to {}: \"{}\"", flag, least, most, text)};
}

// Fewer candidates than hits would leave nothing to choose, so --top is their least number.
Result<RankOptions> rank_options(const Arguments& arguments) {
  RankOptions rank;
  rank.count = MUSTER_TRY(count_of(arguments, "--top", 1, rank.count));
  if (const auto least = arguments.value("--min-score")) {
    rank.score_least = MUSTER_TRY(number_of("--min-score", *least, -1, 1));
  }
  const auto fallback = std::min(kCountMost, kCandidatesOfAHit * rank.count);
  rank.mmr_candidate_count =
      MUSTER_TRY(count_of(arguments, "--mmr-candidates", rank.count, fallback));
  if (const auto lambda = arguments.value("--mmr")) {
    rank.mmr_lambda = kLambdaDefault;
    if (!lambda->empty()) rank.mmr_lambda = MUSTER_TRY(number_of("--mmr", *lambda, 0, 1));
  } else if (arguments.has("--mmr-candidates")) {
    return Error{ErrorKind::InvalidArgument, "--mmr-candidates is for --mmr, which is missing"};
  }
  return rank;
}

// Every record is a question.
Status add_queries(const TextReaderOptions& input, std::vector<std::string>& all) {
  const auto reader = MUSTER_TRY(TextReader::open(input));
  TextRecord record;
  while (MUSTER_TRY(reader->next(record))) {
    if (record.fault) return *record.fault;
    all.push_back(std::move(record.text));
    if (all.size() > kQueriesMost) {
      const auto& last = input.inputs[record.input_index];
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{} has more than {} questions",
                               last == "-" ? "standard input" : last, kQueriesMost)};
    }
  }
  return Done{};
}

Result<std::vector<std::string>> queries_of(const CommandContext& context) {
  const auto& words = context.arguments.positionals;
  const auto files = context.arguments.values("--queries");
  if (words.size() < 2 && files.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 "which question? Write it behind OUT in quotes, or name a file with --queries"};
  }
  std::vector<std::string> all;
  for (auto word = words.begin() + 1; word != words.end(); ++word) {
    if (*word == "-") {
      MUSTER_TRY(add_queries({.inputs = {"-"}, .format = TextFormat::Lines}, all));
    } else {
      all.push_back(*word);
    }
  }
  if (files.empty()) return all;
  // All at once, as embed reads them: --field is of use if any of them has fields.
  auto input = input_options(context.config, files);
  input.id_field.reset();  // a setting for what is embedded: questions have no ids
  MUSTER_TRY(add_queries(input, all));
  return all;
}

}  // namespace

std::vector<FlagGroup> search_flag_groups() {
  return {
      {"Questions",
       {SettingId::Field, SettingId::Format},
       {{.name = "--queries",
         .value_name = "FILE",
         .help = "a question for each record: .txt (a line each), .jsonl, .csv; may be repeated",
         .may_repeat = true}}},
      {"Hits",
       {},
       {{"--top", "N", "hits for each question (default: 5)"},
        {"--filter", "EXPR", "only texts whose kept fields fit, such as 'lang=de and year>=2020'"},
        {"--min-score", "S", "only hits with at least this cosine, -1 to 1"},
        {.name = "--mmr",
         .value_name = "[LAMBDA]",
         .help = "hits that differ from each other: maximal marginal relevance, from 0 (as "
                 "different as can be) to 1 (by cosine alone); 0.5 without a number",
         .is_value = is_number},
        {"--mmr-candidates", "N", "the nearest texts of which --mmr picks (default: 5 for a hit)"},
        {"--json", "", "a JSON object a line for each question"}}}};
}

Result<SearchOptions> search_options(const CommandContext& context) {
  SearchOptions options;
  options.out = context.arguments.positionals.front();
  options.rank = MUSTER_TRY(rank_options(context.arguments));
  const auto filter = context.arguments.value("--filter");
  if (filter && filter->find_first_not_of(" \t\n") == std::string::npos) {
    return Error{ErrorKind::InvalidArgument,
                 "--filter is empty: it wants a condition, such as 'lang=de and year>=2020'"};
  }
  options.filter = filter.value_or("");
  options.queries = MUSTER_TRY(queries_of(context));
  return options;
}

}  // namespace muster
