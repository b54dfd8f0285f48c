// With --server another process has settled where and how the model runs, so flags that would
// settle it here are refused rather than ignored. The model's name may be left out; whether the
// first word is a name or an input depends on what the server serves and on what is a file.

#include "cli/embed_server_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/embed_options.h"
#include "cli/server_client.h"
#include "jobs/remote_model.h"

namespace muster {
namespace {

constexpr SettingId kStillCount[] = {SettingId::Field, SettingId::IdField, SettingId::Format,
                                     SettingId::SkipBad, SettingId::PromptName};

// Errors: NotFound where none embeds; Unsupported for `name` when that one does not.
Status check_embeds(const std::vector<ListedModel>& models, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& model : models) {
    if (model.embeds && model.name == name) return Done{};
    if (model.embeds) names.push_back(model.name);
  }
  if (names.empty()) return Error{ErrorKind::NotFound, "the server serves no model that embeds"};
  const bool is_there = std::any_of(models.begin(), models.end(),
                                    [&](const auto& model) { return model.name == name; });
  if (!is_there) return Done{};
  return Error{ErrorKind::Unsupported,
               fmt::format("the server's model {} does not embed: name one that does ({})", name,
                           fmt::join(names, ", "))};
}

}  // namespace

Status check_without_server(const Arguments& arguments) {
  if (arguments.has("--server")) return Done{};
  for (const auto& flag : server_flags().flags) {
    if (!arguments.has(flag.name)) continue;
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} is for a server: name it with --server URL", flag.name)};
  }
  return Done{};
}

Status check_with_server(const Arguments& arguments) {
  const auto refused = [](const std::string& flag) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} cannot be used with --server: the server has settled where and "
                             "how its models run",
                             flag)};
  };
  if (arguments.has("--plan")) return refused("--plan");
  for (const auto& given : arguments.settings) {
    if (std::find(std::begin(kStillCount), std::end(kStillCount), given.id) ==
        std::end(kStillCount)) {
      return refused(given.place);
    }
  }
  return Done{};
}

// A name that the server knows is a model even where a file has it too; a word that is neither is
// taken for a misspelt model, whose error names the nearest.
Result<ServedWords> sort_served_words(const std::vector<ListedModel>& models,
                                      const std::vector<std::string>& words) {
  ServedWords sorted{.model = {}, .inputs = words};
  const auto& first = words.front();
  const bool names_model = std::any_of(models.begin(), models.end(),
                                       [&](const auto& model) { return model.name == first; });
  std::error_code ignored;
  if (names_model || (first != "-" && !std::filesystem::exists(first, ignored))) {
    sorted.model = first;
    sorted.inputs.erase(sorted.inputs.begin());
  }
  MUSTER_TRY(check_embeds(models, sorted.model));
  sorted.model = MUSTER_TRY(choose_model(models, sorted.model));
  if (sorted.inputs.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("which texts? Name a file after the model {}", sorted.model)};
  }
  return sorted;
}

Result<EmbedOptions> embed_server_options(const CommandContext& context) {
  MUSTER_TRY(check_with_server(context.arguments));
  EmbedOptions options;
  MUSTER_TRY(set_output(context, options));
  auto access = MUSTER_TRY(server_access(context));
  options.server = EmbedServer{.access = std::move(access)};
  const auto models = MUSTER_TRY(read_listed_models(options.server->access));
  auto words = MUSTER_TRY(sort_served_words(models, context.arguments.positionals));
  options.model = std::move(words.model);
  options.input = input_options(context.config, std::move(words.inputs));
  options.input.keep = MUSTER_TRY(kept_fields(context.arguments));
  MUSTER_TRY(TextReader::open(options.input));
  MUSTER_TRY(check_standard_output(options));
  options.resume = context.arguments.has("--resume");
  options.restart = context.arguments.has("--restart");
  options.prompt_name = context.config.text(SettingId::PromptName);
  options.skip_bad = context.config.is_on(SettingId::SkipBad).value_or(false);
  return options;
}

}  // namespace muster
