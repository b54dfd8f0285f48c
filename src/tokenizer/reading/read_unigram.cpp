// Pieces and scores are read in two passes over one file. The scores need the digits as they are
// written, which the parsed document no longer has, so a second, lazy parser walks the
// vocabulary again. Both must find the same number of entries.

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/models/library_number.h"
#include "tokenizer/reading/tokenizer_json.h"

namespace muster {
namespace {

Error not_a_piece() { return corrupt_json("an entry is not a piece and its score", "vocab"); }

/// The pieces in the order of their ids.
Result<TokenTable> read_pieces(const JsonArray& vocab) {
  constexpr std::size_t kPieceSizeGuess = 12;
  TokenTable tokens;
  tokens.reserve(vocab.size(), vocab.size() * kPieceSizeGuess);
  TokenId id = 0;
  for (const JsonElement element : vocab) {
    JsonArray entry;
    std::string_view piece;
    const bool is_entry = element.get(entry) == simdjson::SUCCESS && entry.size() == 2 &&
                          entry.at(0).get(piece) == simdjson::SUCCESS && entry.at(1).is_number();
    if (!is_entry) {
      return not_a_piece();
    }
    tokens.insert(piece, id++);
    if (tokens.count() != id) {
      return unsupported_part("vocabulary with a piece twice", piece);
    }
  }
  return tokens;
}

/// The scores, from their digits in the file: simdjson rounds them better than the library does.
Result<std::vector<double>> read_scores(std::string_view document) {
  namespace ondemand = simdjson::ondemand;
  const simdjson::padded_string padded(document);
  ondemand::parser parser;
  ondemand::document root;
  ondemand::array vocab;
  std::vector<double> scores;
  if (parser.iterate(padded).get(root) != simdjson::SUCCESS ||
      root["model"]["vocab"].get_array().get(vocab) != simdjson::SUCCESS) {
    return not_a_piece();
  }
  for (auto element : vocab) {
    ondemand::array entry;
    std::string_view digits;
    if (element.get_array().get(entry) != simdjson::SUCCESS) {
      return not_a_piece();
    }
    for (auto part : entry) {
      if (part.raw_json_token().get(digits) != simdjson::SUCCESS) {  // the last one stays
        return not_a_piece();
      }
    }
    const double score = library_number(digits);
    if (!std::isfinite(score)) {
      return corrupt_json("a score is out of range", digits);
    }
    scores.push_back(score);
  }
  return scores;
}

}  // namespace

Result<std::unique_ptr<const Model>> read_unigram(const JsonObject& model,
                                                  std::string_view document) {
  UnigramOptions options;
  const auto unk_id = MUSTER_TRY(optional_field(model, "unk_id"));
  if (!unk_id) {
    // The library would fail at the first unknown character.
    return unsupported_part("Unigram model", "without unk_id");
  }
  if (unk_id->get(options.unk_id) != simdjson::SUCCESS) {
    return corrupt_json("field is not a count", "unk_id");
  }
  options.byte_fallback = MUSTER_TRY(bool_field_or(model, "byte_fallback", false));
  const auto vocab = MUSTER_TRY(array_field(model, "vocab"));
  auto tokens = MUSTER_TRY(read_pieces(vocab));
  auto scores = MUSTER_TRY(read_scores(document));
  if (scores.size() != tokens.count()) {
    return not_a_piece();
  }
  return make_unigram(std::move(tokens), std::move(scores), options);
}

}  // namespace muster
