// Attention of packed texts has no kernel on a CPU, so it is a loop over the texts. The bias is
// read as CUDA's kernel reads it: from its first row and column on, for every text.
// Source: torch 2.11, mem_eff_attention/kernel_forward.h, advance_to_block.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/library.h>

#include <tuple>

#include "standin/torch/kernel_call.h"

namespace muster::standin {
namespace {

// What CUDA's kernel wants of the size of a head, in elements. Source: torch 2.11,
// mem_eff_attention/kernel_forward.h, kAlignmentQ for 16-bit types.
constexpr std::int64_t kAlignment = 8;

struct Attention {
  at::Tensor query, key, value;  // [1, rows, heads, head size]
  at::Tensor bias;               // [1, heads, rows, rows], or undefined
  at::Tensor offsets;            // [texts + 1]
  at::Tensor out;                // [1, rows, heads, head size]
  std::int64_t longest = 0;      // no text is longer
  std::optional<double> scale;
};

void attend(const Attention& all) {
  const auto* begin = all.offsets.const_data_ptr<std::int32_t>();
  for (std::int64_t text = 0; text + 1 < all.offsets.size(0); ++text) {
    const auto first = begin[text];
    const std::int64_t length = begin[text + 1] - first;
    if (length == 0) continue;
    // CUDA's kernel leaves the rows beyond `longest` as they are, and says nothing.
    TORCH_CHECK(length <= all.longest, "a text has ", length,
                " tokens, and the longest was to have ", all.longest);
    // [1, heads, length, head size]
    const auto own = [&](const at::Tensor& part) {
      return part.narrow(1, first, length).transpose(1, 2);
    };
    std::optional<at::Tensor> bias;
    if (all.bias.defined()) bias = all.bias.narrow(2, 0, length).narrow(3, 0, length);
    own(all.out).copy_(at::scaled_dot_product_attention(own(all.query), own(all.key),
                                                        own(all.value), bias, /*dropout_p=*/0.0,
                                                        /*is_causal=*/false, all.scale));
  }
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt> forward(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& query_offsets,
    const std::optional<at::Tensor>& key_offsets, std::optional<c10::SymInt> query_longest,
    std::optional<c10::SymInt> key_longest, double dropout, std::int64_t mask_type, bool wants_sums,
    std::optional<double> scale, const std::optional<at::Tensor>& key_lengths,
    std::optional<std::int64_t> window) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      query_offsets && key_offsets && query_offsets->is_same(*key_offsets) && query_longest &&
          key_longest && dropout == 0 && mask_type == 0 && !wants_sums && !key_lengths && !window,
      "the stand-in device has a kernel of aten::_efficient_attention_forward "
      "for packed texts alone");
  TORCH_CHECK(query.size(3) % kAlignment == 0, "the size of a head must be a multiple of ",
              kAlignment, ": ", query.size(3));
  auto out = at::empty(query.sizes(), query.options());
  KernelCall call("aten::_efficient_attention_forward", query.device());
  call.launch([all = Attention{.query = call.read(query),
                               .key = call.read(key),
                               .value = call.read(value),
                               .bias = bias ? call.read(*bias) : at::Tensor(),
                               .offsets = call.read(*query_offsets),
                               .out = call.write(out),
                               .longest = query_longest->expect_int(),
                               .scale = scale}] { attend(all); });
  const auto none = at::empty({0}, query.options().dtype(at::kFloat));
  return {out, none, none, none, *query_longest, *key_longest};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_efficient_attention_forward", &forward);
}

}  // namespace muster::standin
