#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/load/answer_reader.h"
#include "bench/load/length_law.h"
#include "net/http_client.h"

namespace muster {

/// What is asked of a server.
enum class BenchApi : std::uint8_t { Http, Embeddings, Rerank, Chat, Completions };

/// "http", "embeddings", "rerank", "chat", "completions". Threads: pure.
std::string_view bench_api_name(BenchApi api);

/// How requests are made of texts.
struct ApiOptions {
  BenchApi api = BenchApi::Embeddings;
  std::string model = {};                 // as the server names it
  std::uint32_t texts_per_request = 1;    // embeddings; of rerank the documents of a query
  LengthLaw output_tokens{.median = 64};  // chat and completions: at most so many
  bool ignores_eos = false;  // the same: exactly so many, of servers that know `ignore_eos`
  std::uint64_t seed = 1;    // of the lengths
  /// More members of each body, as a JSON object that `check_extra_body` has taken; empty: none.
  std::string extra_body = {};
  HttpHeaders headers = {};  // of each request, beside Content-Type
};

/// Requests as bytes on the wire, and how their answers are read.
struct PreparedRequests {
  std::vector<std::string> bytes;
  AnswerReaderMaker make_reader;
  std::string target;  // "/v1/embeddings"
};

/// Errors: InvalidArgument (no JSON object, a member that the benchmark itself sets, or that asks
/// for several replies). Threads: pure.
Status check_extra_body(std::string_view json);

/// One request for each text, or for each group of `texts_per_request`: a text that is left over
/// alone is filled up with the first ones. Of rerank the first text of a group is the query.
///
/// texts: at least one. keeps_text: of answers. Threads: pure.
PreparedRequests prepare_requests(const HttpUrl& url, const ApiOptions& options,
                                  std::span<const std::string> texts, bool keeps_text);

/// Plain HTTP: a GET of `target`, or a POST of each body.
///
/// target: with its query, "/health". Threads: pure.
PreparedRequests prepare_plain_requests(const HttpUrl& url, const std::string& target,
                                        std::span<const std::string> bodies,
                                        const HttpHeaders& headers);

/// Of one run: bounds memory, and the time before it.
inline constexpr std::size_t kMadeTextsMost = 20'000;

/// Bytes of the made texts of a run together, about: bounds the same.
inline constexpr std::uint64_t kMadeBytesMost = 256'000'000;

/// Bytes of a made text: the mean over the law, at least 1. Threads: pure.
std::uint64_t made_text_bytes(const LengthLaw& words);

/// Texts of common English words, each of which is about one token, of drawn lengths in words. No
/// two are alike where they have three words, so that no cache of the server answers in its place
/// (of up to 262,144 texts).
///
/// Threads: pure.
std::vector<std::string> generate_texts(const LengthLaw& words, std::size_t count,
                                        std::uint64_t seed);

}  // namespace muster
