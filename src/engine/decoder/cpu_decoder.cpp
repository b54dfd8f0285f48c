#include "engine/decoder/cpu_decoder.h"

#include <utility>

namespace muster::engine {

CpuDecoder::CpuDecoder(const DecoderOptions& options, TensorSource source)
    : spec_(options.spec),
      source_(std::move(source)),
      team_(options.thread_count, options.on_thread_start) {}

Result<std::unique_ptr<DecoderModel>> CpuDecoder::load(const DecoderOptions& options,
                                                       TensorSource source) {
  std::unique_ptr<CpuDecoder> decoder(new CpuDecoder(options, std::move(source)));
  auto tensors = MUSTER_TRY(find_decoder_tensors({decoder->spec_, decoder->source_}));
  decoder->weights_ =
      MUSTER_TRY(pack_decoder(std::move(tensors), options.precision, decoder->team_));
  const auto& kernels = decoder_kernels_of(options.precision);
  decoder->pool_ = KvPool(options.spec, options.block_count,
                          kept_as(options.kv_cache_dtype, options.precision), kernels);
  decoder->pass_ =
      std::make_unique<DecoderPass>(decoder->spec_, decoder->weights_, kernels, decoder->team_,
                                    options.step_tokens_max, options.logits_max);
  return std::unique_ptr<DecoderModel>(std::move(decoder));
}

void CpuDecoder::run(std::span<const StepSequence> sequences, std::span<float> logits) {
  pass_->run(sequences, pool_, logits.data());
}

void CpuDecoder::share(std::size_t count, const std::function<void(std::size_t)>& item) {
  team_.share(count, [&](std::size_t index, std::size_t) { item(index); });
}

}  // namespace muster::engine
