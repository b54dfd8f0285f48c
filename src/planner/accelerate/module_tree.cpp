// The tree is flattened in preorder with the end of each subtree, so that "inside" is a comparison
// and a sum over a subtree is one backward pass without recursion. Sizes are counted in bits and
// checked for overflow while they are read, hence later sums need no checks. Tied parameters take
// the shape and dtype of the last name but are counted at the first in the tree, as accelerate
// does. Source: accelerate 1.15.0, utils/modeling.py.

#include "planner/accelerate/module_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace muster {
namespace {

constexpr std::size_t kDepthMax = 200;  // far beyond any model; bounds the recursion
constexpr std::size_t kNodesMax = 1U << 24U;
constexpr std::uint64_t kBitsMax = std::uint64_t{1} << 60U;  // sums of a few stay within int64

struct DtypeBits {
  std::string_view name;
  std::uint32_t bits;
};

constexpr std::array kDtypes = {
    DtypeBits{"float32", 32},
    DtypeBits{"float16", 16},
    DtypeBits{"bfloat16", 16},
    DtypeBits{"float64", 64},
    DtypeBits{"bool", 1},
    DtypeBits{"int2", 2},
    DtypeBits{"int4", 4},
    DtypeBits{"uint4", 4},
    DtypeBits{"fp8", 8},
    DtypeBits{"int8", 8},
    DtypeBits{"uint8", 8},
    DtypeBits{"int16", 16},
    DtypeBits{"uint16", 16},
    DtypeBits{"int32", 32},
    DtypeBits{"uint32", 32},
    DtypeBits{"int64", 64},
    DtypeBits{"uint64", 64},
    DtypeBits{"complex64", 64},
    DtypeBits{"complex128", 128},
    DtypeBits{"float8_e4m3fn", 8},
    DtypeBits{"float8_e5m2", 8},
    DtypeBits{"float8_e4m3fnuz", 8},
    DtypeBits{"float8_e5m2fnuz", 8},
    DtypeBits{"float8_e8m0fnu", 8},
};

std::string_view without_torch(std::string_view dtype) {
  constexpr std::string_view prefix = "torch.";
  return dtype.substr(0, prefix.size()) == prefix ? dtype.substr(prefix.size()) : dtype;
}

/// Integers and booleans are never converted at load.
bool keeps_its_dtype(std::string_view dtype) {
  return dtype.rfind("uint", 0) == 0 || dtype.rfind("int", 0) == 0 || dtype == "bool";
}

Error too_large(const std::string& name) {
  return Error{ErrorKind::ResourceExhausted,
               fmt::format("{}: with it the model has more than 2^57 bytes", name)};
}

/// The work of `flatten_modules`: nodes are appended while the entries are walked.
class Flattener {
 public:
  Status add_module(const ModuleEntry& entry, const std::string& full_name, std::uint32_t parent,
                    std::size_t depth) {
    if (depth > kDepthMax) {
      return Error{
          ErrorKind::ResourceExhausted,
          fmt::format("modules are nested deeper than {}: {}", kDepthMax, full_name.substr(0, 60))};
    }
    const auto self = MUSTER_TRY(append(ModuleNodeKind::Module, full_name, parent));
    tree_.nodes[self].class_name = entry.class_name;
    std::set<std::string_view> names;
    for (const auto& tensor : entry.parameters) {
      MUSTER_TRY(add_tensor(ModuleNodeKind::Parameter, tensor, self, names));
    }
    for (const auto& child : entry.children) {
      MUSTER_TRY(check_name(child.name, full_name, names));
      MUSTER_TRY(add_module(child, joined(full_name, child.name), self, depth + 1));
    }
    for (const auto& tensor : entry.buffers) {
      MUSTER_TRY(add_tensor(ModuleNodeKind::Buffer, tensor, self, names));
    }
    tree_.nodes[self].end = static_cast<std::uint32_t>(tree_.nodes.size());
    return Done{};
  }

  Status tie(const std::vector<std::vector<std::string>>& groups);
  ModuleTree take() { return std::move(tree_); }

 private:
  static std::string joined(const std::string& parent, const std::string& name) {
    return parent.empty() ? name : parent + "." + name;
  }

  static Status check_name(const std::string& name, const std::string& parent,
                           std::set<std::string_view>& names) {
    if (name.empty() || name.find('.') != std::string::npos) {
      return invalid_error(
          fmt::format("a name below '{}' is empty or has a dot: '{}'", parent, name));
    }
    if (!names.insert(name).second) {
      return invalid_error(fmt::format("a name comes twice: '{}'", joined(parent, name)));
    }
    return Done{};
  }

  Result<std::uint32_t> append(ModuleNodeKind kind, std::string name, std::uint32_t parent) {
    if (tree_.nodes.size() >= kNodesMax) {
      return Error{ErrorKind::ResourceExhausted,
                   fmt::format("a tree has more than {} modules and tensors", kNodesMax)};
    }
    ModuleNode node;
    node.kind = kind;
    node.name = std::move(name);
    node.parent = parent;
    node.end = static_cast<std::uint32_t>(tree_.nodes.size() + 1);
    tree_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(tree_.nodes.size() - 1);
  }

  Status add_tensor(ModuleNodeKind kind, const TensorEntry& entry, std::uint32_t parent,
                    std::set<std::string_view>& names) {
    MUSTER_TRY(check_name(entry.name, tree_.nodes[parent].name, names));
    const auto full_name = joined(tree_.nodes[parent].name, entry.name);
    const auto bits = MUSTER_TRY(dtype_bits(entry.dtype));
    std::uint64_t count = 1;
    for (const auto dimension : entry.shape) {
      if (dimension < 0)
        return invalid_error(fmt::format("{}: a dimension is negative", full_name));
      if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(dimension), &count)) {
        return too_large(full_name);
      }
    }
    std::uint64_t tensor_bits = 0;
    if (__builtin_mul_overflow(count, std::uint64_t{bits}, &tensor_bits) ||
        tensor_bits > kBitsMax - bits_) {
      return too_large(full_name);
    }
    bits_ += tensor_bits;
    const auto self = MUSTER_TRY(append(kind, full_name, parent));
    tree_.nodes[self].element_count = count;
    tree_.nodes[self].dtype = without_torch(entry.dtype);
    return Done{};
  }

  ModuleTree tree_;
  std::uint64_t bits_ = 0;
};

Status Flattener::tie(const std::vector<std::vector<std::string>>& groups) {
  std::map<std::string_view, std::uint32_t> parameters;
  for (std::uint32_t node = 0; node < tree_.nodes.size(); ++node) {
    if (tree_.nodes[node].kind == ModuleNodeKind::Parameter) {
      parameters.emplace(tree_.nodes[node].name, node);
    }
  }
  std::vector<std::vector<std::uint32_t>> merged;
  for (const auto& group : groups) {
    std::vector<std::uint32_t> members;
    for (const auto& name : group) {
      const auto found = parameters.find(name);
      if (found == parameters.end())
        return invalid_error(fmt::format("a tie names no parameter: '{}'", name));
      members.push_back(found->second);
    }
    for (auto other = merged.begin(); other != merged.end();) {
      const bool is_shared = std::any_of(other->begin(), other->end(), [&](std::uint32_t node) {
        return std::find(members.begin(), members.end(), node) != members.end();
      });
      if (is_shared) {
        members.insert(members.begin(), other->begin(), other->end());
        other = merged.erase(other);
      } else {
        ++other;
      }
    }
    merged.push_back(std::move(members));
  }
  for (auto& group : merged) {
    if (group.empty()) continue;
    const auto shown = group.back();
    std::sort(group.begin(), group.end());
    group.erase(std::unique(group.begin(), group.end()), group.end());
    if (group.size() < 2) continue;
    const auto count = tree_.nodes[shown].element_count;
    const auto dtype = tree_.nodes[shown].dtype;
    for (const auto member : group) {
      tree_.nodes[member].element_count = count;
      tree_.nodes[member].dtype = dtype;
      if (member != group.front()) tree_.nodes[member].counted_at = group.front();
    }
    // find_tied_parameters answers each group by name.
    std::sort(group.begin(), group.end(), [&](std::uint32_t a, std::uint32_t b) {
      return tree_.nodes[a].name < tree_.nodes[b].name;
    });
    tree_.ties.push_back(std::move(group));
  }
  return Done{};
}

}  // namespace

bool ModuleTree::has_child_module(std::uint32_t node) const {
  for (auto below = node + 1; below < nodes[node].end; below = nodes[below].end) {
    if (is_module(below)) return true;
  }
  return false;
}

std::vector<std::uint32_t> ModuleTree::children(std::uint32_t node) const {
  std::vector<std::uint32_t> result;
  for (auto below = node + 1; below < nodes[node].end; below = nodes[below].end) {
    result.push_back(below);
  }
  return result;
}

std::optional<std::uint32_t> ModuleTree::find(std::string_view name) const {
  std::uint32_t node = 0;
  while (nodes[node].name != name) {
    auto below = node + 1;
    const auto leads_there = [&](const std::string& prefix) {
      return name.rfind(prefix, 0) == 0 &&
             (name.size() == prefix.size() || name[prefix.size()] == '.');
    };
    while (below < nodes[node].end && !leads_there(nodes[below].name)) below = nodes[below].end;
    if (below >= nodes[node].end) return std::nullopt;
    node = below;
  }
  return node;
}

Result<ModuleTree> flatten_modules(const ModuleEntry& root,
                                   const std::vector<std::vector<std::string>>& ties) {
  Flattener flattener;
  MUSTER_TRY(flattener.add_module(root, "", 0, 0));
  MUSTER_TRY(flattener.tie(ties));
  return flattener.take();
}

Result<std::uint32_t> dtype_bits(std::string_view dtype) {
  const auto name = without_torch(dtype);
  for (const auto& known : kDtypes) {
    if (known.name == name) return known.bits;
  }
  return invalid_error(fmt::format(
      "unknown dtype '{}' (there are float32, float16, bfloat16, int8, int4, ...)", dtype));
}

Result<std::vector<std::int64_t>> module_bits(const ModuleTree& tree, const LoadDtypes& dtypes) {
  std::optional<std::uint32_t> load_bits;
  if (dtypes.all) load_bits = MUSTER_TRY(dtype_bits(*dtypes.all));
  std::map<std::uint32_t, std::uint32_t> special;
  for (const auto& [name, dtype] : dtypes.special) {
    const auto node = tree.find(name);
    if (!node || tree.is_module(*node)) {
      return invalid_error(fmt::format("a special dtype names no tensor: '{}'", name));
    }
    special[*node] = MUSTER_TRY(dtype_bits(dtype));
  }
  std::vector<std::int64_t> bits(tree.nodes.size(), 0);
  std::uint64_t total = 0;
  for (std::uint32_t node = static_cast<std::uint32_t>(tree.nodes.size()); node-- > 0;) {
    const auto& entry = tree.nodes[node];
    if (entry.kind != ModuleNodeKind::Module && !entry.counted_at) {
      auto element_bits = MUSTER_TRY(dtype_bits(entry.dtype));
      if (const auto found = special.find(node); found != special.end()) {
        element_bits = found->second;
      } else if (load_bits && !keeps_its_dtype(entry.dtype)) {
        element_bits = std::min(*load_bits, element_bits);
      }
      std::uint64_t product = 0;
      if (__builtin_mul_overflow(entry.element_count, std::uint64_t{element_bits}, &product) ||
          product > kBitsMax - total) {
        return too_large(entry.name);
      }
      total += product;
      bits[node] = static_cast<std::int64_t>(product);
    }
    if (node != 0) bits[entry.parent] += bits[node];
  }
  return bits;
}

}  // namespace muster
