#pragma once

#include <span>
#include <string>

#include "net/http_message.h"
#include "server/api_error.h"
#include "server/call_fields.h"
#include "server/call_input.h"
#include "server/rerank_api.h"
#include "server/rows_answer.h"
#include "server/tokens_answer.h"
#include "serving/inference_service.h"

namespace muster {

// The bodies of text-embeddings-inference's API, and its answers. What muster adds: `model`,
// `lane`, `timeout_ms`. `parse_rerank` reads the body of /rerank.
//
// Errors: 400, in TEI's form 422. Threads: pure.
// Source: text-embeddings-inference, router/src/http/types.rs and server.rs.

/// A body of POST /embed, and of POST /, where Hugging Face's InferenceClient sends it.
struct TeiEmbedRequest {
  EmbedCall call;
  bool is_normalized = true;
};

/// Reads `inputs` (a text, texts, or token ids), `normalize`, `truncate`, `truncation_direction`,
/// `prompt_name` and `dimensions`.
ApiResult<TeiEmbedRequest> parse_tei_embed(std::string body, const InputLimits& limits,
                                           Duration deadline_most);

/// `[[0.6,0.8],…]`.
RowSection tei_section();

/// Reads `inputs` (`source_sentence`, `sentences`) and `parameters` (`truncate`,
/// `truncation_direction`, `prompt_name`) of POST /similarity. The source is the first of the
/// texts.
ApiResult<EmbedCall> parse_tei_similarity(std::string body, const TextListLimits& limits,
                                          Duration deadline_most);

/// `[0.9,…]`: the cosines of the first row with each other one, in float64; 0 with a row of zeros.
HttpResponse tei_similarities(const EmbedAnswer& answer);

/// Reads `inputs`, `add_special_tokens` and `prompt_name` of POST /tokenize.
ApiResult<TokenizeCall> parse_tei_tokenize(std::string body, const TextListLimits& limits,
                                           Duration deadline_most);

/// `[[{"id","text","special","start":null,"stop":null},…],…]`. The text is what the tokenizer makes
/// of the token alone. TEI's places in the input are null, as it gives them for special tokens:
/// this tokenizer keeps none.
TokensForm tei_tokens_form();

/// Reads `ids` (those of one text, or of several) and `skip_special_tokens` of POST /decode.
ApiResult<TokenizeCall> parse_tei_decode(std::string body, const InputLimits& limits,
                                         Duration deadline_most);

/// `["text",…]`.
TokensForm tei_texts_form();

/// `[{"index","text"?,"score"},…]`, the best first.
HttpResponse tei_ranks(const RerankAnswer& answer, const RerankRequest& request);

}  // namespace muster
