// From the name of a model to what a job needs of it. What the caller asked for goes before what
// the model's own files say. All that can be refused is refused here, before a weight is loaded: a
// length beyond the model's, a tokenizer with more tokens than the model has rows for, a prompt
// that it does not have.

#include "jobs/model_opening.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/text.h"

namespace muster {
namespace {

Result<std::unique_ptr<TextEncoder>> make_text_encoder(const ModelChoice& choice,
                                                       const ModelFolder& folder,
                                                       const std::string& prompt_name) {
  auto tokenizer = MUSTER_TRY(Tokenizer::load(folder.path / "tokenizer.json"));
  const auto length_max = choice.length_max.value_or(folder.rerank ? folder.rerank->length_max
                                                                   : folder.sentence.length_max);
  if (length_max > folder.encoder.length_max()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("--max-length is above what the model can take: {} of {}", length_max,
                             folder.encoder.length_max())};
  }
  if (folder.rerank && !tokenizer->encodes_pairs()) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}: the tokenizer's template for pairs is none that is known here",
                             folder.path.string())};
  }
  const auto special_count =
      folder.rerank ? tokenizer->pair_special_token_count() : tokenizer->special_token_count();
  // Special tokens are always kept, so a limit that they fill leaves every text empty.
  if (length_max <= special_count) {
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("--max-length leaves no room for text: {}, of which {} are special tokens",
                    length_max, special_count)};
  }
  // An id beyond the embedding table would be read from outside of it.
  if (tokenizer->vocab_size() > folder.encoder.vocab_size) {
    return Error{
        ErrorKind::Corrupt,
        fmt::format("{}: the tokenizer has more tokens than the model: {} and {}",
                    folder.path.string(), tokenizer->vocab_size(), folder.encoder.vocab_size)};
  }
  return std::make_unique<TextEncoder>(std::move(tokenizer),
                                       prompt_text(folder.sentence, prompt_name),
                                       folder.sentence.lowercase, length_max);
}

}  // namespace

Result<OpenedModel> find_and_read(const ModelChoice& choice) {
  OpenedModel model;
  const auto path = MUSTER_TRY(find_model(choice.model));
  model.folder = MUSTER_TRY(read_model_folder(path));
  model.pooling = choice.pooling.value_or(model.folder.sentence.pooling);
  model.normalize = choice.normalize.value_or(model.folder.sentence.normalize);
  model.prompt_name = MUSTER_TRY(find_prompt(model.folder.sentence, choice.prompt_name));
  return model;
}

Status open_texts(const ModelChoice& choice, OpenedModel& model) {
  model.text_encoder = MUSTER_TRY(make_text_encoder(choice, model.folder, model.prompt_name));
  // The hash reads the weights, which takes longest: it comes after all that may refuse.
  model.hash = MUSTER_TRY(model_hash(model.folder.path));
  return Done{};
}

Result<std::string> find_prompt(const SentenceSpec& sentence,
                                const std::optional<std::string>& asked) {
  const auto name = asked ? asked : sentence.default_prompt;
  if (!name) return std::string();
  std::vector<std::string> names;
  for (const auto& prompt : sentence.prompts) {
    if (prompt.name == *name) return *name;
    names.push_back(prompt.name);
  }
  if (names.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("the model has no prompts, so none is named: {}", *name)};
  }
  const auto nearest = nearest_name(*name, names);
  return Error{ErrorKind::InvalidArgument,
               fmt::format("the model has no prompt of that name: {}; {}", *name,
                           nearest ? fmt::format("did you mean {}?", *nearest)
                                   : fmt::format("it has {}", fmt::join(names, ", ")))};
}

std::optional<std::string> preferred_prompt(const SentenceSpec& sentence,
                                            const std::vector<std::string>& names) {
  for (const auto& name : names) {
    for (const auto& prompt : sentence.prompts) {
      if (prompt.name == name) return name;
    }
  }
  return std::nullopt;
}

std::string prompt_text(const SentenceSpec& sentence, const std::string& name) {
  for (const auto& prompt : sentence.prompts) {
    if (prompt.name == name) return prompt.text;
  }
  return "";
}

ModelRequest model_request(const OpenedModel& model) {
  return {.model_folder = std::filesystem::absolute(model.folder.path).string(),
          .device = DeviceKind::Cpu,  // filled in for each device
          .pooling = model.pooling,
          .normalize = model.normalize};
}

}  // namespace muster
