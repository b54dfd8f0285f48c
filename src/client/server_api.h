#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/precision.h"
#include "tokenizer/tokenizer.h"

namespace muster {

/// What a client must know of the API of `muster serve` (docs/openapi.yaml): the bodies that it
/// sends, and what it reads of the answers.

/// A model of a server, as it tells of it. Of one that does not embed only name, path, state and
/// reason are known.
struct ListedModel {
  std::string name;
  std::string path;  // on the server's machine; empty: it is not told to this caller
  bool embeds = false;
  std::string state;  // "absent", "loading", "ready", "drained", "failed"
  std::string reason;
  std::uint32_t dim = 0;  // 0: null there
  std::uint32_t length_max = 0;
  std::vector<std::string> prompts;
  std::string default_prompt;
  std::string pooling;
  bool normalize = false;
  Precision precision = Precision::Fp32;
  std::string precision_reason;
  std::string equality_class;
};

/// True when both give the same bits for every text.
bool compute_alike(const ListedModel& one, const ListedModel& other);

/// The target that tells of one model; whatever its name holds.
std::string model_target(std::string_view name);

/// Errors: Corrupt, naming the field that is missing. Threads: pure.
Result<ListedModel> parse_listed_model(const std::string& body);
Result<std::vector<ListedModel>> parse_listed_models(const std::string& body);

/// The body of POST /v1/embeddings and of /v1/tokenize: texts are cut at the model's limit. prompt:
/// empty for none.
std::string embeddings_body(std::string_view model, std::string_view prompt,
                            std::span<const std::string_view> texts);
std::string tokenize_body(std::string_view model, std::string_view prompt,
                          std::span<const std::string_view> texts);

/// The rows of an answer in base64, as bytes of float32: one of `dim` values for each text.
///
/// Errors: Corrupt for anything else.
Result<std::vector<std::string>> parse_rows(const std::string& body, std::size_t text_count,
                                            std::uint32_t dim);

/// How many tokens each text has, and whether it was cut. Errors: Corrupt.
Result<std::vector<Tokenizer::Encoded>> parse_token_counts(const std::string& body,
                                                           std::size_t text_count);

}  // namespace muster
