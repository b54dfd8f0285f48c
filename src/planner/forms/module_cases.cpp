// A file of cases with recorded answers is itself a file of cases. Lists of pairs may stand where
// order counts (objects are read sorted by key), and sizes are read by the grammar of the rules
// that answer. Unknown fields are refused rather than skipped: a misspelt option would turn a test
// into another test. Errors carry the path of the case and the field in front, and the first one
// ends the run. Depth is bounded before recursion, as the input may come from anywhere.

#include "planner/forms/module_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "planner/accelerate/accelerate_plan.h"
#include "planner/plan/max_memory.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kDepthMax = 200;  // as flatten_modules; bounds the recursion here
constexpr std::int64_t kBitsPerByte = 8;

constexpr std::array<std::string_view, 14> kFields = {"tree",
                                                      "max_memory",
                                                      "strategy",
                                                      "ties",
                                                      "no_split",
                                                      "dtype",
                                                      "special_dtypes",
                                                      "device_map",
                                                      "offload_buffers",
                                                      "fallback",
                                                      "balanced_memory",
                                                      "buffer_warning",
                                                      "error",
                                                      "total"};

/// `error` with the place in the input in front.
Error at(const std::string& where, Error error) {
  error.message = where + ": " + error.message;
  return error;
}

/// The value of `key`, or null.
const Json& field(const Json& object, const char* key) {
  static const Json none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

Result<std::string> text_of(const Json& value, const std::string& where) {
  if (!value.is_string()) return invalid_error(where + ": must be a text");
  return value.get<std::string>();
}

Result<bool> flag_of(const Json& object, const char* key) {
  const auto& value = field(object, key);
  if (value.is_null()) return false;
  if (!value.is_boolean()) return invalid_error(fmt::format("{}: must be true or false", key));
  return value.get<bool>();
}

/// The list at `key`; an absent one is empty.
Result<const Json*> list_of(const Json& object, const char* key) {
  static const Json none = Json::array();
  const auto& value = field(object, key);
  if (value.is_null()) return &none;
  if (!value.is_array()) return invalid_error(fmt::format("{}: must be a list", key));
  return &value;
}

Result<std::vector<std::string>> texts_of(const Json& list, const std::string& where) {
  if (!list.is_array()) return invalid_error(where + ": must be a list of texts");
  std::vector<std::string> texts;
  for (const auto& item : list) texts.push_back(MUSTER_TRY(text_of(item, where)));
  return texts;
}

/// Pairs of a list [[KEY, VALUE]...] or of an object.
Result<std::vector<std::pair<std::string, const Json*>>> pairs_of(const Json& value,
                                                                  const std::string& where) {
  std::vector<std::pair<std::string, const Json*>> pairs;
  if (value.is_object()) {
    for (auto item = value.begin(); item != value.end(); ++item) {
      pairs.emplace_back(item.key(), &item.value());
    }
    return pairs;
  }
  if (!value.is_array()) return invalid_error(where + ": must be a list of pairs or an object");
  for (const auto& pair : value) {
    const bool is_pair = pair.is_array() && pair.size() == 2;
    if (is_pair && pair[0].is_string()) {
      pairs.emplace_back(pair[0].get<std::string>(), &pair[1]);
    } else if (is_pair && pair[0].is_number_unsigned()) {
      pairs.emplace_back(std::to_string(pair[0].get<std::uint64_t>()), &pair[1]);
    } else {
      return invalid_error(where + ": each pair must be [name, value]");
    }
  }
  return pairs;
}

Result<std::vector<TensorEntry>> tensors_of(const Json& module, const char* key) {
  std::vector<TensorEntry> tensors;
  const auto* list = MUSTER_TRY(list_of(module, key));
  for (const auto& item : *list) {
    if (!item.is_array() || item.size() != 3 || !item[1].is_array()) {
      return invalid_error(fmt::format("{}: each must be [name, [shape], dtype]", key));
    }
    TensorEntry tensor;
    tensor.name = MUSTER_TRY(text_of(item[0], key));
    tensor.dtype = MUSTER_TRY(text_of(item[2], key));
    for (const auto& dimension : item[1]) {
      if (!dimension.is_number_integer()) {
        return invalid_error(
            fmt::format("{}: {}: a dimension must be a whole number", key, tensor.name));
      }
      if (dimension.is_number_unsigned() && dimension.get<std::uint64_t>() > INT64_MAX) {
        return invalid_error(fmt::format("{}: {}: a dimension is above 2^63", key, tensor.name));
      }
      tensor.shape.push_back(dimension.get<std::int64_t>());
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<ModuleEntry> module_of(const Json& value, std::size_t depth) {
  if (!value.is_object())
    return invalid_error("must be an object with class, params, buffers and children");
  if (depth > kDepthMax)
    return invalid_error(fmt::format("modules are nested deeper than {}", kDepthMax));
  ModuleEntry module;
  module.class_name = MUSTER_TRY(text_of(field(value, "class"), "class"));
  module.parameters = MUSTER_TRY(tensors_of(value, "params"));
  module.buffers = MUSTER_TRY(tensors_of(value, "buffers"));
  const auto* children = MUSTER_TRY(list_of(value, "children"));
  for (const auto& child : *children) {
    if (!child.is_array() || child.size() != 2)
      return invalid_error("children: each must be [name, module]");
    const auto name = MUSTER_TRY(text_of(child[0], "children"));
    auto entry = module_of(child[1], depth + 1);
    if (!entry) return at(name, entry.error());
    entry->name = name;
    module.children.push_back(*std::move(entry));
  }
  return module;
}

Result<std::int64_t> budget_bits(const Json& value, bool is_accelerate) {
  std::uint64_t bytes = 0;
  if (value.is_number_unsigned()) {
    bytes = value.get<std::uint64_t>();
  } else if (value.is_number_integer()) {
    return invalid_error("a memory size cannot be negative: " + value.dump());
  } else if (value.is_string()) {
    const auto text = value.get<std::string>();
    bytes = MUSTER_TRY(is_accelerate ? parse_accelerate_size(text) : parse_memory_size(text));
  } else {
    return invalid_error("must be a whole number of bytes or a text such as 10GB: " + value.dump());
  }
  if (bytes > INT64_MAX / kBitsPerByte) return invalid_error("above 2^60 bytes: " + value.dump());
  return static_cast<std::int64_t>(bytes) * kBitsPerByte;
}

Result<PlaceBudgets> budgets_of(const Json& value, bool is_accelerate) {
  PlaceBudgets budgets;
  for (const auto& [name, size] : MUSTER_TRY(pairs_of(value, "max_memory"))) {
    auto place = parse_place(name);
    if (!place) return at("max_memory", place.error());
    auto bits = budget_bits(*size, is_accelerate);
    if (!bits) return at("max_memory: " + name, bits.error());
    budgets.push_back({*place, *bits});
  }
  auto ordered = ordered_budgets(std::move(budgets));
  if (!ordered) return at("max_memory", ordered.error());
  return ordered;
}

Status check_fields(const Json& value) {
  if (!value.is_object()) return invalid_error("must be an object with tree and max_memory");
  const std::vector<std::string> known(kFields.begin(), kFields.end());
  for (auto item = value.begin(); item != value.end(); ++item) {
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    const auto nearest = nearest_name(item.key(), known);
    return invalid_error(fmt::format("unknown field '{}'{}", item.key(),
                                     nearest ? fmt::format(": did you mean {}?", *nearest) : ""));
  }
  return Done{};
}

Status read_dtypes(const Json& value, LoadDtypes& dtypes) {
  if (const auto& dtype = field(value, "dtype"); !dtype.is_null()) {
    dtypes.all = MUSTER_TRY(text_of(dtype, "dtype"));
  }
  const auto& special = field(value, "special_dtypes");
  if (special.is_null()) return Done{};
  for (const auto& [name, dtype] : MUSTER_TRY(pairs_of(special, "special_dtypes"))) {
    dtypes.special.emplace_back(name, MUSTER_TRY(text_of(*dtype, "special_dtypes")));
  }
  return Done{};
}

Status read_custom_map(const Json& value, ModuleCase& result) {
  for (const auto& [name, json] : MUSTER_TRY(pairs_of(field(value, "device_map"), "device_map"))) {
    const auto text = json->is_string() ? json->get<std::string>() : json->dump();
    auto place = parse_place(text);
    if (!place) return at("device_map: " + name, place.error());
    result.custom_map.emplace_back(name, *place);
  }
  return Done{};
}

Result<ModuleCase> case_of(const Json& value, bool is_accelerate) {
  MUSTER_TRY(check_fields(value));
  ModuleCase result;
  std::vector<std::vector<std::string>> ties;
  const auto* groups = MUSTER_TRY(list_of(value, "ties"));
  for (const auto& group : *groups) ties.push_back(MUSTER_TRY(texts_of(group, "ties")));
  auto root = module_of(field(value, "tree"), 0);
  if (!root) return at("tree", root.error());
  auto tree = flatten_modules(*root, ties);
  if (!tree) return at("tree", tree.error());
  result.tree = *std::move(tree);
  result.budgets = MUSTER_TRY(budgets_of(field(value, "max_memory"), is_accelerate));
  const auto* classes = MUSTER_TRY(list_of(value, "no_split"));
  result.no_split_classes = MUSTER_TRY(texts_of(*classes, "no_split"));
  result.options.offload_buffers = MUSTER_TRY(flag_of(value, "offload_buffers"));
  result.options.fallback_allocation = MUSTER_TRY(flag_of(value, "fallback"));
  MUSTER_TRY(read_dtypes(value, result.dtypes));
  if (const auto& strategy = field(value, "strategy"); !strategy.is_null()) {
    const auto name = MUSTER_TRY(text_of(strategy, "strategy"));
    auto parsed = parse_module_strategy(name);
    if (!parsed) return at("strategy", parsed.error());
    result.strategy = *parsed;
  }
  if (result.strategy == ModuleStrategy::Custom) MUSTER_TRY(read_custom_map(value, result));
  return result;
}

Json bytes_json(std::int64_t bits) {
  if (bits % kBitsPerByte == 0) return bits / kBitsPerByte;
  return static_cast<double>(bits) / kBitsPerByte;
}

nlohmann::ordered_json answer_json(const ModuleTree& tree, const ModulePlan& plan) {
  nlohmann::ordered_json balanced = nlohmann::ordered_json::array();
  for (const auto& budget : plan.balanced) {
    balanced.push_back({budget.place.name(), bytes_json(budget.bits)});
  }
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  for (const auto& [node, place] : plan.placement.map) map[tree.nodes[node].name] = place.name();
  nlohmann::ordered_json answer;
  answer["balanced_memory"] = std::move(balanced);
  answer["device_map"] = std::move(map);
  answer["buffer_warning"] = plan.placement.has_buffer_warning;
  return answer;
}

}  // namespace

Result<std::string> answer_module_cases(std::string_view text, bool is_accelerate) {
  const auto input = Json::parse(text, nullptr, false);
  if (input.is_discarded()) return invalid_error("the cases are not JSON");
  const Json& cases = input.is_object() ? field(input, "cases") : input;
  if (!cases.is_array())
    return invalid_error("the cases must be a list, or an object with a list 'cases'");
  nlohmann::ordered_json answers = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto where = fmt::format("case {}", i);
    auto problem = case_of(cases[i], is_accelerate);
    if (!problem) return at(where, problem.error());
    auto plan = plan_modules(*problem,
                             is_accelerate ? PlacementRules::Accelerate : PlacementRules::Repaired);
    if (!plan) return at(where, plan.error());
    answers.push_back(answer_json(problem->tree, *plan));
  }
  return answers.dump() + "\n";
}

}  // namespace muster
