#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/accelerate/module_tree.h"
#include "spec/model_weights.h"

namespace muster {

/// A published decoder, without its weights' values.
struct StudyModel {
  std::string name;
  ModuleTree tree;                   // as accelerate sees it
  std::vector<std::int64_t> bits;    // [nodes]
  std::vector<std::uint64_t> chain;  // bytes of embedding, blocks, final norm with head
  ModelDescription description;      // as muster's planner sees it: the same units
};

/// Six of them, in bfloat16: Llama-3-8B and -70B, Qwen2.5-7B and -32B, Mistral-7B, Mixtral-8x7B.
Result<std::vector<StudyModel>> study_models();

}  // namespace muster
