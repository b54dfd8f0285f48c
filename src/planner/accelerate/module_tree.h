#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster {

/// A parameter or buffer of a module, as PyTorch describes it.
struct TensorEntry {
  std::string name;  // within its module: "weight"
  std::vector<std::int64_t> shape;
  std::string dtype;  // "float16", "torch.bfloat16", "bool", "int4"
};

/// A module as a caller describes it; the root's own name is empty.
struct ModuleEntry {
  std::string name;
  std::string class_name;
  std::vector<TensorEntry> parameters;
  std::vector<TensorEntry> buffers;
  std::vector<ModuleEntry> children;  // in the order of definition
};

enum class ModuleNodeKind : std::uint8_t { Module, Parameter, Buffer };

/// One line of a flattened tree.
struct ModuleNode {
  ModuleNodeKind kind = ModuleNodeKind::Module;
  std::string name;                         // full: "model.layers.3.mlp"; the root: ""
  std::string class_name;                   // Module only
  std::uint32_t parent = 0;                 // the root: itself
  std::uint32_t end = 0;                    // one past the last node below it
  std::uint64_t element_count = 0;          // tensors
  std::string dtype;                        // tensors, without "torch."
  std::optional<std::uint32_t> counted_at;  // a tied parameter that another node stands for
};

/// A tree of modules in preorder; what a module holds directly comes as parameters, then child
/// modules, then buffers, which is accelerate's order of work.
struct ModuleTree {
  std::vector<ModuleNode> nodes;                 // [0]: the root
  std::vector<std::vector<std::uint32_t>> ties;  // parameters that are one tensor, by name

  bool is_module(std::uint32_t node) const { return nodes[node].kind == ModuleNodeKind::Module; }
  bool contains(std::uint32_t outer, std::uint32_t inner) const {
    return outer <= inner && inner < nodes[outer].end;
  }
  bool has_child_module(std::uint32_t node) const;

  /// The nodes directly below `node`, in order.
  std::vector<std::uint32_t> children(std::uint32_t node) const;
  std::optional<std::uint32_t> find(std::string_view name) const;
};

/// Flattens `root`. Each group of `ties` names parameters that are one tensor: that of its last
/// name, counted at the name which comes first in the tree. Groups with a name in common are one.
///
/// Errors: InvalidArgument (a name that is empty, has a dot or comes twice, a negative dimension, a
/// dtype that is not known, a tie that names no parameter), ResourceExhausted (nested deeper than
/// 200, or more than 2^57 bytes).
Result<ModuleTree> flatten_modules(const ModuleEntry& root,
                                   const std::vector<std::vector<std::string>>& ties);

/// Bits that an element takes; "torch." in front is ignored. bool counts as one bit, which is what
/// accelerate counts, not what PyTorch allocates.
/// Source: accelerate 1.15.0, utils/modeling.py, dtype_byte_size. Errors: InvalidArgument.
Result<std::uint32_t> dtype_bits(std::string_view dtype);

/// What weights are converted to at load.
struct LoadDtypes {
  std::optional<std::string> all;  // floating tensors become this where it is smaller
  std::vector<std::pair<std::string, std::string>> special;  // tensor's full name, its dtype
};

/// Bits below each node, itself included. [nodes]
///
/// Bits, because a bool counts 1/8 byte and an int4 half of one. A tied parameter counts once.
/// Source: accelerate 1.15.0, utils/modeling.py, compute_module_sizes. Errors: InvalidArgument (a
/// dtype that is not known, a special dtype for a name that is not there).
Result<std::vector<std::int64_t>> module_bits(const ModuleTree& tree, const LoadDtypes& dtypes);

}  // namespace muster
