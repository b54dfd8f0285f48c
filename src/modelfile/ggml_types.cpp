// The types that tensors of a GGUF file may have, by their ids.

#include <algorithm>
#include <array>

#include "modelfile/gguf.h"

namespace muster {
namespace {

// Removed ids (4, 5, 31 to 33, 36 to 38) are left out: no file that ggml reads has them.
constexpr std::array<GgmlType, 35> kTypes{{
    {0, "F32", 1, 4, true},          {1, "F16", 1, 2, true},
    {2, "Q4_0", 32, 18, false},      {3, "Q4_1", 32, 20, false},
    {6, "Q5_0", 32, 22, false},      {7, "Q5_1", 32, 24, false},
    {8, "Q8_0", 32, 34, false},      {9, "Q8_1", 32, 36, false},
    {10, "Q2_K", 256, 84, false},    {11, "Q3_K", 256, 110, false},
    {12, "Q4_K", 256, 144, false},   {13, "Q5_K", 256, 176, false},
    {14, "Q6_K", 256, 210, false},   {15, "Q8_K", 256, 292, false},
    {16, "IQ2_XXS", 256, 66, false}, {17, "IQ2_XS", 256, 74, false},
    {18, "IQ3_XXS", 256, 98, false}, {19, "IQ1_S", 256, 50, false},
    {20, "IQ4_NL", 32, 18, false},   {21, "IQ3_S", 256, 110, false},
    {22, "IQ2_S", 256, 82, false},   {23, "IQ4_XS", 256, 136, false},
    {24, "I8", 1, 1, false},         {25, "I16", 1, 2, false},
    {26, "I32", 1, 4, false},        {27, "I64", 1, 8, false},
    {28, "F64", 1, 8, true},         {29, "IQ1_M", 256, 56, false},
    {30, "BF16", 1, 2, true},        {34, "TQ1_0", 256, 54, false},
    {35, "TQ2_0", 256, 66, false},   {39, "MXFP4", 32, 17, false},
    {40, "NVFP4", 64, 36, false},    {41, "Q1_0", 128, 18, false},
    {42, "Q2_0", 64, 18, false},
}};

}  // namespace

// The table is sorted by id and has gaps, so it is searched rather than indexed.
const GgmlType* find_ggml_type(std::uint32_t id) {
  const auto* found =
      std::lower_bound(kTypes.begin(), kTypes.end(), id,
                       [](const GgmlType& type, std::uint32_t wanted) { return type.id < wanted; });
  return found != kTypes.end() && found->id == id ? found : nullptr;
}

}  // namespace muster
