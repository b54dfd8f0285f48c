// What a server says of its models, as the description that a local run makes of its own: from
// there on a run does not know which of the two it has. The hash comes out of the equality class,
// so outputs of a server and of this machine can be told to be of the same model.

#include "jobs/remote_model.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "jobs/model_opening.h"

namespace muster {

Result<std::vector<ListedModel>> read_listed_models(const ServerAccess& access) {
  const auto http = MUSTER_TRY(HttpClient::open(access.url, access.http));
  const auto answer = MUSTER_TRY(http->call("GET", "/v1/models", access.headers));
  if (answer.status != 200) return server_error(answer.status, answer.body);
  return parse_listed_models(answer.body);
}

Result<std::string> choose_model(std::span<const ListedModel> models, const std::string& asked) {
  std::vector<std::string> names;
  for (const auto& model : models) {
    if (model.name == asked) return asked;
    if (model.embeds) names.push_back(model.name);
  }
  const auto all = fmt::format("it serves {}", fmt::join(names, ", "));
  if (names.empty()) {
    return Error{ErrorKind::NotFound, "the server serves no model that gives vectors"};
  }
  if (!asked.empty()) {
    const auto nearest = nearest_name(asked, names);
    return Error{ErrorKind::NotFound,
                 fmt::format("the server has no model of that name: {}; {}", asked,
                             nearest ? fmt::format("did you mean {}?", *nearest) : all)};
  }
  if (names.size() > 1) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("which model of the server? Name it before the inputs; {}", all)};
  }
  return names.front();
}

Result<EmbedModel> remote_embed_model(const ListedModel& listed,
                                      const std::optional<std::string>& prompt_name,
                                      const std::string& url) {
  SentenceSpec sentence;
  for (const auto& name : listed.prompts) sentence.prompts.push_back({name, {}});
  if (!listed.default_prompt.empty()) sentence.default_prompt = listed.default_prompt;
  // A class is "HASH PRECISION DEVICES".
  const auto hash_size = listed.equality_class.find(' ');
  if (hash_size == std::string::npos || listed.dim == 0) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("the server says no class and dimension of {}", listed.name)};
  }
  auto prompt = MUSTER_TRY(find_prompt(sentence, prompt_name));
  return EmbedModel{.path = listed.path.empty() ? listed.name : listed.path,
                    .server = url,
                    .hash = listed.equality_class.substr(0, hash_size),
                    .pooling = listed.pooling,
                    .normalize = listed.normalize,
                    .prompt_name = std::move(prompt),
                    .length_max = listed.length_max,
                    .precision = listed.precision,
                    .precision_reason = listed.precision_reason,
                    .equality_class = listed.equality_class};
}

}  // namespace muster
