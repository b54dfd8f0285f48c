// The loop around a decoder: orders in, a step, tokens out.

#include "worker/decoder_lane.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "engine/decoder/decoder.h"
#include "engine/decoder/kv_pool.h"
#include "engine/encoder.h"
#include "engine/gpu.h"
#include "engine/ops/decoder_kernels.h"
#include "modelfile/decoder_config.h"
#include "worker/generation.h"
#include "worker/pinning.h"

namespace muster {
namespace {

struct Loaded {
  std::unique_ptr<engine::Decoder> decoder;
  StepOptions steps;
};

// A GPU needs one thread, which gives it work.
std::size_t thread_count(const LoadDecoder& load, DeviceKind device) {
  return runs_as_gpu(device) ? 1 : std::max<std::size_t>(1, load.cpus.size());
}

Result<Loaded> load_decoder(const LoadDecoder& load, DeviceKind device) {
  // The lane computes on a stream of its own, which the weights are copied by too.
  if (runs_as_gpu(device)) MUSTER_TRY(engine::open_gpu(device));
  engine::enter_lane(device);
  engine::DecoderOptions options;
  options.device = device;
  options.source = load.source;
  options.spec = MUSTER_TRY(read_decoder_spec(options.source));
  options.precision = load.precision;
  options.thread_count = thread_count(load, device);
  options.on_thread_start = [cpus = load.cpus](std::size_t number) {
    pin_to(std::array{cpus[number]});
    engine::enter_lane();
  };
  options.step_tokens_max = load.step_tokens_most;
  // Each sequence chooses by one, and the ids of prompts are scored by others.
  options.logits_max = load.sequences_most + StepOptions{}.scored_most;
  const bool is_wide = load.precision == DecoderPrecision::Fp32;
  const auto block_bytes = engine::kv_block_bytes(options.spec, is_wide);
  // A cache of less than one block would hold nothing; of more than all sequences can fill, waste.
  const auto length_max = engine::decoder_length_max(options.spec);
  const std::uint64_t blocks_of_all =
      std::uint64_t{load.sequences_most} *
      ((length_max + engine::kKvBlockTokens - 1) / engine::kKvBlockTokens);
  options.block_count =
      std::min(std::max<std::uint64_t>(1, load.cache_bytes / block_bytes), blocks_of_all);
  Loaded loaded;
  loaded.steps = {.block_tokens = engine::kKvBlockTokens,
                  .block_count = static_cast<std::uint32_t>(options.block_count),
                  .step_tokens_most = load.step_tokens_most,
                  .sequences_most = load.sequences_most,
                  .length_max = static_cast<std::uint32_t>(length_max),
                  .keeps_prefixes = load.has_prefix_cache};
  loaded.decoder = MUSTER_TRY(engine::Decoder::load(std::move(options)));
  return loaded;
}

}  // namespace

DecoderLane::DecoderLane(LoadDecoder load, DeviceKind device, DecoderLaneEvents events)
    : load_(std::move(load)),
      device_(device),
      events_(std::move(events)),
      thread_([this] { run(); }) {}

DecoderLane::~DecoderLane() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
}

void DecoderLane::generate(SequenceId id, Generate request) { push({id, std::move(request)}); }

void DecoderLane::cancel(SequenceId id) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(orders_, [id](const Order& order) { return order.id == id; });
  }
  push({id, std::nullopt});
}

void DecoderLane::push(Order order) {
  {
    const std::lock_guard lock(mutex_);
    orders_.push_back(std::move(order));
  }
  changed_.notify_all();
}

// Empty at the end of the lane, or where none must be waited for and none has come.
std::deque<DecoderLane::Order> DecoderLane::take_orders(bool may_wait) {
  std::unique_lock lock(mutex_);
  if (may_wait) changed_.wait(lock, [this] { return is_ending_ || !orders_.empty(); });
  return std::exchange(orders_, {});
}

void DecoderLane::run() {
  if (!load_.cpus.empty()) pin_to(std::span(load_.cpus).first(1));
  auto loaded = load_decoder(load_, device_);
  if (!loaded) {
    events_.on_load_failed(loaded.error());
    for (auto orders = take_orders(true); !orders.empty(); orders = take_orders(true)) {
      for (const auto& order : orders) {
        if (order.request) {
          events_.on_failed(order.id, loaded.error());
        } else {
          events_.on_cancelled(order.id);
        }
      }
    }
    return;
  }
  auto& decoder = *loaded->decoder;
  events_.on_ready({.model_id = load_.model_id,
                    .vocab_size = static_cast<std::uint32_t>(decoder.vocab_size()),
                    .length_max = loaded->steps.length_max,
                    .block_count = loaded->steps.block_count,
                    .thread_count = static_cast<std::uint32_t>(thread_count(load_, device_)),
                    .block_bytes = decoder.block_bytes(),
                    .weights_bytes = decoder.weights_bytes(),
                    .decoder_class = engine::decoder_class(device_)});
  Generation generation(decoder, loaded->steps,
                        {.on_step_begun = events_.on_step_begun,
                         .on_tokens = events_.on_tokens,
                         .on_finished = events_.on_finished,
                         .on_failed = events_.on_failed,
                         .on_broken = events_.on_broken});
  serve(generation);
}

void DecoderLane::serve(Generation& generation) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (is_ending_) return;
    }
    for (auto& order : take_orders(generation.is_idle())) {
      if (!order.request) {
        generation.cancel(order.id);
        events_.on_cancelled(order.id);
      } else if (const auto added = generation.add(order.id, *std::move(order.request)); !added) {
        events_.on_failed(order.id, added.error());
      }
    }
    if (!generation.is_idle()) generation.step();
  }
}

}  // namespace muster
