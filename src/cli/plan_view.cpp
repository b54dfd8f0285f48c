// Copies that differ in their devices alone share their rows, so that a plan of many equal copies
// is as short as one. A table that is too wide gives up columns and not digits: first the margin's,
// then those of the parts, whose sum stays.

#include "cli/plan_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/fit_view.h"
#include "terminal/table.h"
#include "terminal/text_width.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

// A stage of one or more copies that differ in their devices alone.
struct StageRow {
  const PlannedStage* stage = nullptr;
  std::vector<std::uint32_t> devices;
  std::uint32_t copy_count = 0;
};

// Devices are left out on purpose: they are what the copies differ in.
bool is_same_stage(const PlannedStage& a, const PlannedStage& b) {
  return a.place == b.place && a.first_unit == b.first_unit && a.last_unit == b.last_unit &&
         a.budget_bytes == b.budget_bytes && a.memory.total() == b.memory.total();
}

bool is_same_copy(const PlannedCopy& a, const PlannedCopy& b) {
  return std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(),
                    is_same_stage);
}

std::vector<StageRow> stage_rows(const Plan& plan) {
  std::vector<std::pair<const PlannedCopy*, std::vector<StageRow>>> kinds;
  for (const auto& copy : plan.copies) {
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& candidate) {
      return is_same_copy(*candidate.first, copy);
    });
    if (kind == kinds.end()) {
      kinds.emplace_back(&copy, std::vector<StageRow>(copy.stages.size()));
      kind = kinds.end() - 1;
      for (std::size_t i = 0; i < copy.stages.size(); ++i) kind->second[i].stage = &copy.stages[i];
    }
    for (std::size_t i = 0; i < copy.stages.size(); ++i) {
      auto& row = kind->second[i];
      row.devices.insert(row.devices.end(), copy.stages[i].devices.begin(),
                         copy.stages[i].devices.end());
      ++row.copy_count;
    }
  }
  std::vector<StageRow> rows;
  for (auto& [copy, its_rows] : kinds)
    std::move(its_rows.begin(), its_rows.end(), std::back_inserter(rows));
  return rows;
}

std::string place_text(const Machine& machine, const StageRow& row) {
  if (row.stage->place == PlanPlace::Host) return "cpu (host)";
  if (row.stage->place == PlanPlace::Disk) return "disk";
  return device_list(machine, row.devices);
}

// "embedding, 0-15", "16-31, head", "all 12".
// Units of a stage follow each other, so the first layer and their number say all.
std::string layers_text(const ModelDescription& model, const PlannedStage& stage) {
  std::string text;
  const auto add = [&text](const std::string& piece) {
    text += (text.empty() ? "" : ", ") + piece;
  };
  std::uint32_t first_layer = 0;
  std::uint32_t layer_count = 0;
  bool has_embedding = false;
  bool has_head = false;
  for (auto i = stage.first_unit; i < stage.last_unit; ++i) {
    const auto& unit = model.units[i];
    has_embedding |= unit.kind == UnitKind::Embedding;
    has_head |= unit.kind == UnitKind::Head;
    if (unit.kind != UnitKind::Block) continue;
    if (layer_count == 0) first_layer = unit.layer;
    ++layer_count;
  }
  if (stage.first_unit == 0 && stage.last_unit == model.units.size()) {
    return fmt::format("all {}", layer_count);
  }
  if (has_embedding) add("embedding");
  if (layer_count == 1) add(std::to_string(first_layer));
  if (layer_count > 1) add(fmt::format("{}-{}", first_layer, first_layer + layer_count - 1));
  if (has_head) add("head");
  return text;
}

std::string bytes_text(std::uint64_t bytes) { return bytes == 0 ? "-" : human_bytes(bytes); }

// Of all that the place has for work, the margin included: 100 % would leave none.
std::string share_text(const PlannedStage& stage) {
  if (stage.place == PlanPlace::Disk) return "-";
  const auto all = static_cast<double>(stage.budget_bytes + stage.margin_bytes);
  return fmt::format("{:.0f} %", 100.0 * static_cast<double>(stage.memory.total()) / all);
}

// How much of its memory a place's row tells apart.
enum class MemoryDetail : std::uint8_t { Parts, WithoutMargin, WorkInOne };

// {"KV cache", "537 MB"}, …: what is in a place beside its weights.
std::vector<std::pair<std::string, std::uint64_t>> memory_cells(const PlannedStage& stage,
                                                                PlanTask task,
                                                                MemoryDetail detail) {
  const auto& memory = stage.memory;
  const auto states = memory.gradients + memory.optimizer;
  const auto passing = memory.activations + memory.logits;
  const auto other = memory.workspace + memory.context;
  std::vector<std::pair<std::string, std::uint64_t>> cells;
  if (detail == MemoryDetail::WorkInOne) {
    cells.emplace_back("work", memory.total() - memory.weights);
    return cells;
  }
  if (task == PlanTask::Generate) cells.emplace_back("KV cache", memory.kv_cache);
  if (task == PlanTask::Train) cells.emplace_back("states", states);
  cells.emplace_back("activ.", passing);
  cells.emplace_back("other", other);
  if (detail == MemoryDetail::Parts) cells.emplace_back("margin", stage.margin_bytes);
  return cells;
}

Table place_table(const ModelDescription& model, const Machine& machine, const Plan& plan,
                  MemoryDetail detail) {
  const auto rows = stage_rows(plan);
  std::vector<Column> columns{{.title = "device", .may_shrink = true},
                              {.title = "layers", .may_shrink = true},
                              {"weights", Align::Right}};
  for (const auto& [title, bytes] : memory_cells(*rows.front().stage, plan.workload.task, detail)) {
    columns.push_back({title, Align::Right});
  }
  columns.push_back({"share", Align::Right});
  Table table(std::move(columns));
  for (const auto& row : rows) {
    std::vector<TableCell> cells{place_text(machine, row), layers_text(model, *row.stage),
                                 bytes_text(row.stage->memory.weights)};
    for (const auto& [title, bytes] : memory_cells(*row.stage, plan.workload.task, detail)) {
      cells.emplace_back(bytes_text(bytes));
    }
    cells.emplace_back(share_text(*row.stage));
    table.add_row(std::move(cells));
  }
  return table;
}

std::string places_text(const ModelDescription& model, const Machine& machine, const Plan& plan,
                        const TerminalInfo& terminal) {
  std::vector<Table> tables;
  for (const auto detail :
       {MemoryDetail::Parts, MemoryDetail::WithoutMargin, MemoryDetail::WorkInOne}) {
    tables.push_back(place_table(model, machine, plan, detail));
  }
  return render_first_fitting(tables, terminal);
}

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
                  machine.name),
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

std::string limits_text(const Plan& plan, const TerminalInfo& terminal) {
  std::string text;
  if (plan.batch_max && plan.context_max) {
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
  for (const auto& part : explain_memory(model, plan.workload)) {
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
