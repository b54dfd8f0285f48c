// What a run was asked for, as pairs of a name and a value.

#include "jobs/embed_identity.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "jobs/input_identity.h"

namespace muster {
namespace {

constexpr const char* kPrecision = "the precision";
constexpr const char* kModel = "the model";
constexpr const char* kSkipBad = "--skip-bad";  // in runs of earlier versions

}  // namespace

// A bad record that was skipped is in the output, and one that was not has ended the run: whether
// they are skipped may change.
RunIdentity embed_identity(const EmbedOptions& options, const EmbedModel& model) {
  auto identity = input_identity(options.input);
  // Only where they are used, so that what was begun before they existed can be resumed.
  const auto& kept = options.input.keep;
  if (!kept.empty()) identity.emplace_back("--keep", names_value(kept));
  if (writes_objects(options)) identity.emplace_back("the form of a line of OUT", "an object");
  const auto prompt = model.prompt_name.empty() ? std::nullopt : std::optional(model.prompt_name);
  const RunIdentity of_model{{"--max-length", std::to_string(model.length_max)},
                             {"--pooling", model.pooling},
                             {"--normalize", model.normalize ? "on" : "off"},
                             {"--prompt-name", name_value(prompt)},
                             {kModel, model.hash},
                             {kPrecision, std::string(precision_name(model.precision))},
                             {kEqualityClassEntry, model.equality_class}};
  identity.insert(identity.end(), of_model.begin(), of_model.end());
  return identity;
}

std::optional<Precision> embed_precision_in(const RunIdentity& identity) {
  const auto* name = value_in(identity, kPrecision);
  return name == nullptr ? std::nullopt : parse_precision(*name);
}

RunIdentity identity_as_begun(RunIdentity identity, const RunIdentity& then) {
  const auto* skipped = value_in(then, kSkipBad);
  if (skipped == nullptr) return identity;
  const auto place = std::find_if(identity.begin(), identity.end(),
                                  [](const auto& entry) { return entry.first == kModel; });
  identity.emplace(place, kSkipBad, *skipped);
  return identity;
}

bool writes_objects(const EmbedOptions& options) {
  return options.out.extension() == ".jsonl" &&
         (options.input.id_field || !options.input.keep.empty());
}

RunIdentity identity_as_asked(const EmbedOptions& options, const RunIdentity& identity) {
  auto asked = without_entry(without_entry(identity, kEqualityClassEntry), kSkipBad);
  return options.precision ? asked : without_entry(std::move(asked), kPrecision);
}

}  // namespace muster
