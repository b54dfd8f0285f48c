// How a worker has a decoder: its threads, and the room of its cache and of its steps.

#include "worker/decoder_loading.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "engine/decoder/kv_pool.h"
#include "engine/encoder.h"
#include "engine/gpu.h"
#include "engine/ops/decoder_kernels.h"
#include "modelfile/decoder_config.h"
#include "worker/pinning.h"

namespace muster {

std::size_t decoder_thread_count(const LoadDecoder& load, DeviceKind device) {
  return runs_as_gpu(device) ? 1 : std::max<std::size_t>(1, load.cpus.size());
}

Result<LoadedDecoder> load_decoder(const LoadDecoder& load, DeviceKind device,
                                   std::size_t layers_most) {
  // The lane computes on a stream of its own, which the weights are copied by too.
  if (runs_as_gpu(device)) MUSTER_TRY(engine::open_gpu(device));
  engine::enter_lane(device);
  engine::DecoderOptions options;
  options.device = device;
  options.source = load.source;
  options.spec = MUSTER_TRY(read_decoder_spec(options.source));
  if (layers_most > 0 && layers_most < options.spec.layer_count) {
    options.spec.layer_count = static_cast<std::uint32_t>(layers_most);
    options.spec.windows.resize(layers_most);
  }
  options.precision = load.precision;
  options.thread_count = decoder_thread_count(load, device);
  options.on_thread_start = [cpus = load.cpus](std::size_t number) {
    pin_to(std::array{cpus[number]});
    engine::enter_lane();
  };
  options.step_tokens_max = load.step_tokens_most;
  // Each sequence chooses by one, and the ids of prompts are scored by others.
  options.logits_max = load.sequences_most + StepOptions{}.scored_most;
  options.kv_cache_dtype = load.kv_cache_dtype;
  const auto block_bytes =
      engine::kv_block_bytes(options.spec, kept_as(load.kv_cache_dtype, load.precision));
  // A cache of less than one block would hold nothing; of more than all sequences can fill, waste.
  const auto length_max = engine::decoder_length_max(options.spec);
  const std::uint64_t blocks_of_all =
      std::uint64_t{load.sequences_most} *
      ((length_max + engine::kKvBlockTokens - 1) / engine::kKvBlockTokens);
  options.block_count =
      std::min(std::max<std::uint64_t>(1, load.cache_bytes / block_bytes), blocks_of_all);
  LoadedDecoder loaded;
  loaded.steps = {.block_tokens = engine::kKvBlockTokens,
                  .block_count = static_cast<std::uint32_t>(options.block_count),
                  .step_tokens_most = load.step_tokens_most,
                  .sequences_most = load.sequences_most,
                  .length_max = static_cast<std::uint32_t>(length_max),
                  .keeps_prefixes = load.has_prefix_cache};
  loaded.decoder = MUSTER_TRY(engine::Decoder::load(std::move(options)));
  return loaded;
}

}  // namespace muster
