// Copies that differ in their devices alone share their rows, so that a plan of many equal copies
// is as short as one. A table that is too wide gives up columns and not digits: first the margin's,
// then those of the parts, whose sum stays.

#include "cli/plan_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "cli/plan_view.h"
#include "terminal/table.h"

namespace muster {
namespace {

// Devices are left out on purpose: they are what the copies differ in.
bool is_same_stage(const PlannedStage& a, const PlannedStage& b) {
  return a.place == b.place && a.first_unit == b.first_unit && a.last_unit == b.last_unit &&
         a.budget_bytes == b.budget_bytes && a.memory.total() == b.memory.total();
}

bool is_same_copy(const PlannedCopy& a, const PlannedCopy& b) {
  return std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(),
                    is_same_stage);
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

}  // namespace

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

std::string places_text(const ModelDescription& model, const Machine& machine, const Plan& plan,
                        const TerminalInfo& terminal) {
  std::vector<Table> tables;
  for (const auto detail :
       {MemoryDetail::Parts, MemoryDetail::WithoutMargin, MemoryDetail::WorkInOne}) {
    tables.push_back(place_table(model, machine, plan, detail));
  }
  return render_first_fitting(tables, terminal);
}

}  // namespace muster
