// The loop around a decoder: orders in, a step, tokens out.

#include "worker/decoder_lane.h"

#include <optional>
#include <utility>

#include "base/clock.h"
#include "engine/decoder/decoder.h"
#include "worker/decoder_loading.h"
#include "worker/generation.h"
#include "worker/pinning.h"

namespace muster {

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
  events_.on_ready(
      {.model_id = load_.model_id,
       .vocab_size = static_cast<std::uint32_t>(decoder.vocab_size()),
       .length_max = loaded->steps.length_max,
       .block_count = loaded->steps.block_count,
       .thread_count = static_cast<std::uint32_t>(decoder_thread_count(load_, device_)),
       .block_bytes = decoder.block_bytes(),
       .weights_bytes = decoder.weights_bytes(),
       .decoder_class = engine::decoder_class(device_)});
  // A GPU's logits may depend on how many tokens are computed at once, so a draft would show.
  const auto drafted_most = runs_as_gpu(device_) ? 0 : load_.drafted_tokens_most;
  const SteadyClock clock;
  Generation generation(decoder, {.steps = loaded->steps, .drafted_most = drafted_most},
                        {.on_step_begun = events_.on_step_begun,
                         .on_cache_use = events_.on_cache_use,
                         .on_tokens = events_.on_tokens,
                         .on_finished = events_.on_finished,
                         .on_failed = events_.on_failed,
                         .on_broken = events_.on_broken},
                        clock);
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
