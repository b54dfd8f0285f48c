#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/json_body.h"

namespace muster {

/// The prompts that a model may have for what a client says its texts are for, the best first;
/// nullopt for a word that no API has. A model without such a prompt embeds the texts as ever.
///
/// "search_query" and "search_document" (Cohere), "query" and "passage" (NVIDIA),
/// "retrieval.query" and "retrieval.passage" (Jina), "classification", "clustering", "separation",
/// "text-matching".
///
/// Threads: pure. Source: sentence-transformers 6, encode_query and encode_document (`query`;
/// `document`, `passage` or `corpus`); Cohere, API reference v2, "Embed", input_type; Jina AI,
/// Embeddings API, task.
std::optional<std::vector<std::string>> prompts_for(std::string_view purpose);

/// The field of a body that says it. It writes into `prompts`, which must outlive the list.
BodyField purpose_field(std::string_view name, std::vector<std::string>& prompts);

}  // namespace muster
