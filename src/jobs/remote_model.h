#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "client/server_access.h"
#include "client/server_api.h"
#include "jobs/embed_backend.h"

namespace muster {

/// What a server serves. Asks once: whoever mistypes an address hears of it at once.
///
/// Errors: those of HttpClient; what the server says.
Result<std::vector<ListedModel>> read_listed_models(const ServerAccess& access);

/// The name of the model that is meant: `asked`, or the only one that embeds where it is empty.
///
/// Errors: NotFound, naming the nearest, or all when the only one is not alone.
Result<std::string> choose_model(std::span<const ListedModel> models, const std::string& asked);

/// The model as a run knows it. prompt_name: asked for; nullopt: the server's default.
///
/// Errors: InvalidArgument for a prompt that the model lacks; Corrupt for a class without a hash.
Result<EmbedModel> remote_embed_model(const ListedModel& listed,
                                      const std::optional<std::string>& prompt_name,
                                      const std::string& url);

}  // namespace muster
