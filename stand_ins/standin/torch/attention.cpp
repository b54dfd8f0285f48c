// Attention of packed texts has no kernel on a CPU, so it is a loop over the texts. The bias is
// read as CUDA's kernel reads it: from its first row and column on, for every text. Causal
// attention is a loop over the queries too, each by itself with the keys that it sees. Source:
// torch 2.11, mem_eff_attention/kernel_forward.h, advance_to_block and attention_kernel.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/library.h>

#include <algorithm>
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

struct CausalAttention {
  at::Tensor query, key, value;  // [rows, heads, head size]; keys have as many heads or fewer
  at::Tensor query_offsets, key_offsets;  // [sequences + 1]
  at::Tensor out;                         // [rows, heads, head size]
  std::int64_t longest_query = 0, longest_key = 0;
  std::optional<double> scale;
  std::int64_t window = 0;  // keys that a query sees, its own the last; 0: all
};

// One row: query [heads, head size], its keys [keys, kv heads, head size].
at::Tensor attend_row(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                      std::optional<double> scale) {
  const auto group = query.size(0) / keys.size(1);
  const auto by_head = [&](const at::Tensor& part) {  // [1, heads, keys, head size]
    return part.repeat_interleave(group, 1).transpose(0, 1).unsqueeze(0);
  };
  return at::scaled_dot_product_attention(query.unsqueeze(0).unsqueeze(2), by_head(keys),
                                          by_head(values), {}, /*dropout_p=*/0.0,
                                          /*is_causal=*/false, scale)
      .squeeze(2)
      .squeeze(0);
}

void attend_causally(const CausalAttention& all) {
  const auto* query_begin = all.query_offsets.const_data_ptr<std::int32_t>();
  const auto* key_begin = all.key_offsets.const_data_ptr<std::int32_t>();
  for (std::int64_t i = 0; i + 1 < all.query_offsets.size(0); ++i) {
    const std::int64_t query_count = query_begin[i + 1] - query_begin[i];
    const std::int64_t key_count = key_begin[i + 1] - key_begin[i];
    TORCH_CHECK(query_count <= all.longest_query && key_count <= all.longest_key, "a sequence has ",
                query_count, " queries and ", key_count, " keys, and the longest was to have ",
                all.longest_query, " and ", all.longest_key);
    for (std::int64_t row = 0; row < query_count; ++row) {
      const auto end = key_count - query_count + row + 1;
      TORCH_CHECK(end > 0, "a query of a sequence sees no key");
      const auto begin = all.window > 0 ? std::max<std::int64_t>(0, end - all.window) : 0;
      const auto own = [&](const at::Tensor& part) {
        return part.narrow(0, key_begin[i] + begin, end - begin);
      };
      const auto place = query_begin[i] + row;
      all.out.select(0, place).copy_(
          attend_row(all.query.select(0, place), own(all.key), own(all.value), all.scale));
    }
  }
}

constexpr std::int64_t kCausalFromBottomRight = 2;

void check_head_size(std::int64_t size) {
  TORCH_CHECK(size % kAlignment == 0, "the size of a head must be a multiple of ", kAlignment, ": ",
              size);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt> forward(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& query_offsets,
    const std::optional<at::Tensor>& key_offsets, std::optional<c10::SymInt> query_longest,
    std::optional<c10::SymInt> key_longest, double dropout, std::int64_t mask_type, bool wants_sums,
    std::optional<double> scale, const std::optional<at::Tensor>& key_lengths,
    std::optional<std::int64_t> window) {
  const bool is_causal = mask_type == kCausalFromBottomRight;
  TORCH_CHECK_NOT_IMPLEMENTED(
      query_offsets && key_offsets && query_longest && key_longest && dropout == 0 && !wants_sums &&
          (!key_lengths || !key_lengths->defined()) &&
          (is_causal ? !bias : query_offsets->is_same(*key_offsets) && mask_type == 0 && !window),
      "the stand-in device has a kernel of aten::_efficient_attention_forward "
      "for packed texts alone");
  check_head_size(query.size(3));
  TORCH_CHECK(!is_causal || key.size(2) == query.size(2),
              "keys must have as many heads as queries: ", key.size(2), " and ", query.size(2));
  // Source: torch 2.11, mem_eff_attention/kernel_forward.h, advance_to_block.
  TORCH_CHECK_NOT_IMPLEMENTED(!is_causal || key.size(2) == 1 || key.stride(2) != 0,
                              "of keys that are one head for all, CUDA's kernel reads past the end "
                              "of many heads: the stand-in device refuses them");
  auto out = at::empty(query.sizes(), query.options());
  KernelCall call("aten::_efficient_attention_forward", query.device());
  if (is_causal) {
    call.launch([all = CausalAttention{.query = call.read(query).squeeze(0),
                                       .key = call.read(key).squeeze(0),
                                       .value = call.read(value).squeeze(0),
                                       .query_offsets = call.read(*query_offsets),
                                       .key_offsets = call.read(*key_offsets),
                                       .out = call.write(out).squeeze(0),
                                       .longest_query = query_longest->expect_int(),
                                       .longest_key = key_longest->expect_int(),
                                       .scale = scale,
                                       .window = window.value_or(0)}] { attend_causally(all); });
  } else {
    call.launch([all = Attention{.query = call.read(query),
                                 .key = call.read(key),
                                 .value = call.read(value),
                                 .bias = bias ? call.read(*bias) : at::Tensor(),
                                 .offsets = call.read(*query_offsets),
                                 .out = call.write(out),
                                 .longest = query_longest->expect_int(),
                                 .scale = scale}] { attend(all); });
  }
  const auto none = at::empty({0}, query.options().dtype(at::kFloat));
  return {out, none, none, none, *query_longest, *key_longest};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> flash_forward(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const std::optional<at::Tensor>& query_offsets, const std::optional<at::Tensor>& key_offsets,
    c10::SymInt query_longest, c10::SymInt key_longest, double dropout, bool is_causal,
    bool wants_mask, std::optional<double> scale, std::optional<c10::SymInt> left,
    std::optional<c10::SymInt> right, const std::optional<at::Tensor>& key_lengths,
    const std::optional<at::Tensor>& slopes) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      query_offsets && key_offsets && dropout == 0 && is_causal && !wants_mask && !right &&
          (!key_lengths || !key_lengths->defined()) && (!slopes || !slopes->defined()),
      "the stand-in device has a kernel of aten::_flash_attention_forward "
      "for causal packed sequences alone");
  TORCH_CHECK(query.scalar_type() == at::kHalf || query.scalar_type() == at::kBFloat16,
              "FlashAttention only support fp16 and bf16 data type");
  // Source: torch 2.11, flash_api.cpp, mha_varlen_fwd, seqlenq_ngroups_swapped.
  TORCH_CHECK_NOT_IMPLEMENTED(query_longest.expect_int() > 1,
                              "with a longest query of 1 flash attention divides the keys by how "
                              "many sequences there are: the stand-in device refuses it");
  // Source: the same, window_size_left >= max_seqlen_k.
  TORCH_CHECK_NOT_IMPLEMENTED(!left || left->expect_int() < key_longest.expect_int(),
                              "flash attention drops a window that is no shorter than the longest "
                              "sequence, and computes by another kernel: the stand-in device "
                              "refuses it");
  check_head_size(query.size(2));
  auto out = at::empty(query.sizes(), query.options());
  KernelCall call("aten::_flash_attention_forward", query.device());
  call.launch([all = CausalAttention{.query = call.read(query),
                                     .key = call.read(key),
                                     .value = call.read(value),
                                     .query_offsets = call.read(*query_offsets),
                                     .key_offsets = call.read(*key_offsets),
                                     .out = call.write(out),
                                     .longest_query = query_longest.expect_int(),
                                     .longest_key = key_longest.expect_int(),
                                     .scale = scale,
                                     .window = left ? left->expect_int() + 1 : 0}] {
    attend_causally(all);
  });
  const auto none = at::empty({0}, query.options().dtype(at::kFloat));
  return {out, none, none, none, none};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_efficient_attention_forward", &forward);
  library.impl("_flash_attention_forward", &flash_forward);
}

}  // namespace muster::standin
