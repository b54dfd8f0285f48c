// A plan from its verdict to what would be better; its table of places is in plan_places.cpp.

#include "cli/plan_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/text.h"
#include "cli/fit_view.h"
#include "cli/plan_places.h"
#include "terminal/table.h"
#include "terminal/text_width.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

// A sentence below what it belongs to.
std::string indented(const std::string& sentence, const TerminalInfo& terminal) {
  return wrapped(sentence, {.width = terminal.width, .head = "  ", .indent = 4});
}

std::string bullets(const std::string& title, const std::vector<std::string>& sentences,
                    const TerminalInfo& terminal) {
  if (sentences.empty()) return {};
  auto text = "\n" + styled(title, kHeading, terminal.has_color) + "\n";
  for (const auto& sentence : sentences) text += indented(sentence, terminal);
  return text;
}

std::string heading(const ModelDescription& model, const Machine& machine, const Plan& plan,
                    const TerminalInfo& terminal) {
  const Wrap wrap{.width = terminal.width, .indent = 2};
  auto text = verdict_text(plan.verdict, terminal);
  text += wrapped(
      fmt::format("{} ({}, {} layers, {} of weights{}) on {}", model.name, model.shape.family,
                  model.shape.layers.size(), human_bytes(model.stored_bytes()),
                  model.weight_source == WeightSource::Config ? " by its config alone" : "",
                  machine_words(machine)),
      wrap);
  text += wrapped("from " + model.origin, wrap);
  return text + assumption_text(model, machine, plan, terminal.width);
}

std::string shape_text(const Plan& plan) {
  return fmt::format("{}: {} cop{} x {} stage{} x {} device{}", plan_strategy_name(plan.strategy),
                     plan.copies.size(), plan.copies.size() == 1 ? "y" : "ies",
                     plan.pipeline_parallel, plan.pipeline_parallel == 1 ? "" : "s",
                     plan.tensor_parallel, plan.tensor_parallel == 1 ? "" : "s");
}

// Where weights would lie on disk, the room beside them would be read as what fits: left out.
std::string limits_text(const Plan& plan, const TerminalInfo& terminal) {
  std::string text;
  if (plan.verdict.fit != Fit::No && plan.batch_max && plan.context_max) {
    text = indented(fmt::format("room for {}, or a context of {} tokens",
                                *plan.batch_max >= kPlanBatchMax
                                    ? std::string("any batch")
                                    : "a batch of " + with_thousands(*plan.batch_max),
                                with_thousands(*plan.context_max)),
                    terminal);
  }
  if (plan.next) {
    text += indented(fmt::format("next better: {}; price: {}", plan.next->what, plan.next->price),
                     terminal);
  }
  return text;
}

// Parts that take no memory in this plan are left out: their formulas would explain nothing that is
// shown.
std::string explanation(const ModelDescription& model, const Machine& machine, const Plan& plan,
                        const TerminalInfo& terminal) {
  std::vector<std::string> stages;
  for (const auto& row : stage_rows(plan)) {
    stages.push_back(fmt::format("{} ends with {}: {}", place_text(machine, row),
                                 model.units[row.stage->last_unit - 1].name, row.stage->why));
  }
  std::vector<std::string> parts;
  const auto rows = stage_rows(plan);
  for (const auto& part : explain_memory(model, plan.workload, computes_on_gpus(machine))) {
    const bool is_used = std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
      return part_bytes(row.stage->memory, part.part) > 0;
    });
    if (!is_used) continue;
    parts.push_back(
        fmt::format("{} = {} [{}; {}]", part.part, part.formula, part.source, part.bound));
  }
  return bullets("stages", stages, terminal) + bullets("memory", parts, terminal);
}

}  // namespace

std::string machine_words(const Machine& machine) {
  return machine.name == "here" ? "this machine" : machine.name;
}

// Runs of numbers are joined ("cuda:0-3,6"), since a plan may be of hundreds of devices.
std::string device_list(const Machine& machine, const std::vector<std::uint32_t>& devices) {
  std::map<DeviceKind, std::vector<std::uint32_t>> by_kind;
  for (const auto device : devices) {
    by_kind[machine.devices[device].kind].push_back(machine.devices[device].index);
  }
  std::string text;
  for (auto& [kind, indices] : by_kind) {
    std::sort(indices.begin(), indices.end());
    text += fmt::format("{}{}:", text.empty() ? "" : " ", device_kind_name(kind));
    for (std::size_t first = 0, last = 0; first < indices.size(); first = last) {
      last = first + 1;
      while (last < indices.size() && indices[last] == indices[last - 1] + 1) ++last;
      text += fmt::format("{}{}", first == 0 ? "" : ",", indices[first]);
      if (last > first + 1) text += fmt::format("-{}", indices[last - 1]);
    }
  }
  return text;
}

// The last table is taken even where it does not fit: none is narrower.
std::string render_first_fitting(std::span<const Table> tables, const TerminalInfo& terminal) {
  const auto width = terminal.width;
  for (const auto& table : tables) {
    const auto lines = split(table.render(kUnboundedWidth), '\n');
    const bool has_room = std::all_of(lines.begin(), lines.end(), [width](const auto& line) {
      return display_width(line) <= width;
    });
    if (has_room) return table.render(width, terminal.has_color);
  }
  return tables.back().render(width, terminal.has_color);
}

std::string plan_text(const ModelDescription& model, const Machine& machine, const Plan& plan,
                      const PlanVerdict& verdict, bool explain, const TerminalInfo& terminal) {
  auto text = heading(model, machine, plan, terminal);
  if (!plan.is_placed()) {
    text += bullets("why", plan.reasons, terminal);
    text += bullets("what would make it fit", plan.missing, terminal);
    return text;
  }
  text += shape_text(plan) + "\n\n" + places_text(model, machine, plan, terminal);
  text += bullets("why", plan.reasons, terminal);
  text += limits_text(plan, terminal);
  text += indented(
      fmt::format("runs here: {}, because {}", verdict.runs_here ? "yes" : "no", verdict.because),
      terminal);
  if (explain) text += explanation(model, machine, plan, terminal);
  return text;
}

}  // namespace muster
