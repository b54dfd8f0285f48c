// Tensor parallelism first, because it shortens each step; pipeline stages take what is left. A
// split that does not divide the heads is refused here with the numbers, since the servers' own
// message comes minutes later.

#include "deploy/shard_choice.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace muster {
namespace {

// Legal without an answer from the heads: what vLLM may try when it does not know them.
std::uint32_t largest_power_of_two_dividing(std::uint32_t count) { return count & (~count + 1); }

Result<ShardCounts> split(ServerApi api, std::uint32_t count, const ModelHeads& heads) {
  if (api == ServerApi::Tgi) {
    if (can_split_heads(api, count, heads)) return ShardCounts{.tensor = count, .pipeline = 1};
    return Error{ErrorKind::InvalidArgument, "the heads do not divide"};
  }
  if (heads.head_count == 0) {
    const auto tensor = largest_power_of_two_dividing(count);
    return ShardCounts{.tensor = tensor, .pipeline = count / tensor};
  }
  for (auto tensor = count; tensor > 0; --tensor) {
    const auto pipeline = count / tensor;
    const bool has_layers = heads.layer_count == 0 || pipeline <= heads.layer_count;
    if (count % tensor == 0 && has_layers && can_split_heads(api, tensor, heads)) {
      return ShardCounts{.tensor = tensor, .pipeline = pipeline};
    }
  }
  return Error{ErrorKind::InvalidArgument, "there are more devices than layers"};
}

std::string heads_text(const ModelHeads& heads) {
  auto text = fmt::format("{} heads", heads.head_count);
  if (heads.kv_head_count != 0 && heads.kv_head_count != heads.head_count) {
    text += fmt::format(" ({} of keys and values)", heads.kv_head_count);
  }
  if (heads.layer_count != 0) text += fmt::format(" and {} layers", heads.layer_count);
  return text;
}

}  // namespace

bool can_split_heads(ServerApi api, std::uint32_t tensor, const ModelHeads& heads) {
  if (tensor == 1 || heads.head_count == 0) return true;
  if (heads.head_count % tensor != 0) return false;
  const auto kv = heads.kv_head_count;
  if (kv == 0 || kv % tensor == 0) return true;
  return api == ServerApi::Vllm && tensor % kv == 0;
}

Result<ShardCounts> choose_shards(ServerApi api, std::uint32_t device_count,
                                  const ModelHeads& heads) {
  const bool is_whole = api == ServerApi::Tei || api == ServerApi::Muster;
  if (device_count <= 1 || is_whole) return ShardCounts{};
  auto chosen = split(api, device_count, heads);
  if (chosen) return chosen;
  std::vector<std::uint32_t> possible;
  for (std::uint32_t count = 1; count < device_count; ++count) {
    if (split(api, count, heads)) possible.push_back(count);
  }
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{} cannot split a model of {} over {} devices; these counts work: {}",
                           api == ServerApi::Tgi ? "TGI" : "vLLM", heads_text(heads), device_count,
                           fmt::join(possible, ", "))};
}

}  // namespace muster
