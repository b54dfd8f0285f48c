// The words of a kind come from what this machine has (devices, cached models) and from what the
// program knows (the catalogues of models and GPUs).
#include "cli/completion/known_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "modelfile/model_catalogue.h"
#include "spec/gpu_catalogue.h"

namespace muster {
namespace {

using Paths = Candidates::Paths;

std::vector<Candidate> cached(const CompletionSources& sources) {
  std::vector<Candidate> all;
  constexpr std::string_view kBare = "sentence-transformers/";
  for (const auto& id : sources.cached_models()) {
    all.push_back({id, "in the hub cache"});
    if (id.starts_with(kBare)) all.push_back({id.substr(kBare.size()), "in the hub cache"});
  }
  return all;
}

// The catalogue's: by id for the hub, by every name for a plan.
std::vector<Candidate> catalogued(bool ids_alone) {
  std::vector<Candidate> all;
  for (const auto& model : model_catalogue()) {
    all.push_back({model.id, "public model"});
    if (ids_alone) continue;
    const auto add = [&](const std::string& name) { all.push_back({name, model.id}); };
    add(model.id.substr(model.id.find('/') + 1));
    for (const auto& name : model.names) add(name);
  }
  return all;
}

// "sim:8x" goes on with each GPU; without a count there is one.
std::vector<Candidate> machines(std::string_view begun) {
  std::vector<Candidate> all{{"here", "this machine"}};
  std::string head = "sim:1x";
  if (const auto times = begun.find('x'); begun.starts_with("sim:") && times != begun.npos) {
    head = begun.substr(0, times + 1);
  }
  for (const auto& gpu : gpu_catalogue()) {
    all.push_back({head + std::string(gpu.name), std::string(gpu.driver_name)});
  }
  return all;
}

std::vector<Candidate> device_lists(const CompletionSources& sources) {
  std::vector<Candidate> all{{"auto", "every GPU, else the CPU"}, {"cpu", "every CPU"}};
  for (auto& device : sources.devices()) all.push_back(std::move(device));
  return all;
}

}  // namespace

void add_candidates(const std::vector<Candidate>& all, std::string_view begun,
                    std::string_view head, Candidates& out) {
  for (const auto& one : all) {
    if (one.text.starts_with(begun)) {
      out.words.push_back({std::string(head) + one.text, one.help});
    }
  }
}

std::vector<Candidate> plain_candidates(std::span<const std::string> texts) {
  std::vector<Candidate> all;
  for (const auto& text : texts) all.push_back({text});
  return all;
}

void add_list_candidates(std::vector<Candidate> all, std::string_view begun, std::string_view head,
                         Candidates& out) {
  const auto comma = begun.rfind(',');
  const auto kept = comma == begun.npos ? std::string_view() : begun.substr(0, comma + 1);
  const auto given = split(kept, ',');
  std::erase_if(all, [&](const Candidate& one) {
    return std::find(given.begin(), given.end(), one.text) != given.end();
  });
  out.goes_on = all.size() > 1;
  add_candidates(all, begun.substr(kept.size()), fmt::format("{}{}", head, kept), out);
}

void add_words_of(WordKind kind, std::string_view begun, std::string_view head,
                  const CompletionSources& sources, Candidates& out) {
  switch (kind) {
    case WordKind::Text:
      return;
    case WordKind::File:
      out.paths = Paths::Files;
      return;
    case WordKind::Folder:
      out.paths = Paths::Folders;
      return;
    case WordKind::Model:
      add_candidates(cached(sources), begun, head, out);
      out.paths = Paths::Models;
      return;
    case WordKind::AnyModel:
      add_candidates(cached(sources), begun, head, out);
      add_candidates(catalogued(false), begun, head, out);
      out.paths = Paths::Files;
      return;
    case WordKind::HubModel:
      add_candidates(catalogued(true), begun, head, out);
      add_candidates(plain_candidates(sources.cached_models()), begun, head, out);
      return;
    case WordKind::Device:
      add_candidates({{"all", "every device, one after the other"}}, begun, head, out);
      add_candidates(sources.devices(), begun, head, out);
      return;
    case WordKind::Devices:
      return add_list_candidates(device_lists(sources), begun, head, out);
    case WordKind::Machine:
      add_candidates(machines(begun), begun, head, out);
      out.paths = Paths::Files;
      return;
  }
}

}  // namespace muster
