// The front of every encoder: checks a batch completely before any kernel sees it, since the
// kernels do not check, and cuts it into passes of bounded size, so that memory does not grow with
// the batch. A text is never split between passes. torch reports faults by exceptions; `guarded`
// turns each into an Error at this border.

#include "engine/encoder.h"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "engine/gpu.h"
#include "engine/gpu_device.h"
#include "engine/guard.h"
#include "engine/memory_use.h"
#include "engine/models/batch_cut.h"
#include "engine/models/cpu_encoder.h"
#include "engine/models/encoder_model.h"
#include "engine/models/encoder_weights.h"
#include "engine/models/packed_encoder.h"
#include "engine/ops/classification_head.h"
#include "engine/ops/lane_team.h"
#include "modelfile/safetensors.h"

namespace muster::engine {
namespace {

Status check_precision(const EncoderOptions& options) {
  if (options.precision == Precision::Int8 && options.device == DeviceKind::Cpu) return Done{};
  const auto allowed = precisions_to_try(options.device);
  if (std::find(allowed.begin(), allowed.end(), options.precision) != allowed.end()) return Done{};
  std::vector<std::string_view> names;
  for (const auto precision : allowed) names.push_back(precision_name(precision));
  if (options.device == DeviceKind::Cpu) names.push_back(precision_name(Precision::Int8));
  return Error{ErrorKind::Unsupported,
               fmt::format("this machine does not compute {} on {}, but {}",
                           precision_name(options.precision), device_kind_name(options.device),
                           fmt::join(names, ", "))};
}

// Of all encoders that live on the GPU.
std::atomic<std::uint64_t> device_weights_bytes = 0;

// torch's allocator keeps what a model has held, for later tensors of the same stream: until it is
// told, no other process and no other stream has it.
void give_memory_back(DeviceKind device) {
  if (!runs_as_gpu(device)) return;
  // A device that is lost has nothing to give.
  (void)guarded([&]() -> Status {
    release_cached_memory(torch_device(device));
    return Done{};
  });
}

struct RowsShape {
  std::size_t count = 0;
  std::size_t dim = 0;
};

Status check_segments(const TextBatch& batch) {
  if (batch.first_segments.empty()) return Done{};
  const bool fits = batch.first_segments.size() == batch.lengths.size() &&
                    std::equal(batch.lengths.begin(), batch.lengths.end(),
                               batch.first_segments.begin(), std::greater_equal<>());
  if (fits) return Done{};
  return Error{ErrorKind::InvalidArgument, "the segments do not fit the texts"};
}

Status check_batch(const EncoderSpec& encoder, const TextBatch& batch, std::size_t row_size,
                   const RowsShape& shape) {
  const auto invalid = [](std::string message) {
    return Error{ErrorKind::InvalidArgument, std::move(message)};
  };
  std::uint64_t tokens = 0;
  for (const auto length : batch.lengths) {
    if (length == 0 || length > encoder.length_max()) {
      return invalid(
          fmt::format("a text must have 1 to {} tokens: {}", encoder.length_max(), length));
    }
    tokens += length;
  }
  if (tokens != batch.ids.size()) {
    return invalid(
        fmt::format("lengths and ids disagree: {} and {} tokens", tokens, batch.ids.size()));
  }
  if (row_size != shape.count * shape.dim) {
    return invalid(
        fmt::format("the rows need {} x {} floats: {}", shape.count, shape.dim, row_size));
  }
  MUSTER_TRY(check_segments(batch));
  const auto wrong = std::find_if(batch.ids.begin(), batch.ids.end(),
                                  [&](std::uint32_t id) { return id >= encoder.vocab_size; });
  if (wrong != batch.ids.end()) {
    return invalid(
        fmt::format("a token id is not in the vocabulary of {}: {}", encoder.vocab_size, *wrong));
  }
  return Done{};
}

// Calls `visit(first_text, part)` for consecutive parts of about `tokens_per_pass` tokens.
template <typename Visit>
void for_each_pass(const TextBatch& batch, std::size_t tokens_per_pass, Visit&& visit) {
  std::size_t first_text = 0;
  for (auto left = batch; !left.lengths.empty();) {
    const auto [part, rest] = cut_batch(left, tokens_per_pass);
    visit(first_text, part);
    first_text += part.lengths.size();
    left = rest;
  }
}

struct Model {
  std::unique_ptr<const EncoderModel> layers;
  std::optional<ClassificationHead> head;  // of a cross-encoder
};

Result<Model> make_model(const EncoderOptions& options) {
  auto files = MUSTER_TRY(ModelWeights::open(options.model_folder));
  auto weights = collect_weights(options.encoder, std::move(files), options.rerank);
  if (!weights) {
    return Error{weights.error().kind,
                 fmt::format("{}: {}", options.model_folder.string(), weights.error().message)};
  }
  Model model;
  if (weights->head) {
    model.head.emplace(*weights->head);
    weights->head.reset();  // copied
  }
  if (runs_as_gpu(options.device)) {
    model.layers = std::make_unique<PackedEncoder>(options.encoder, *weights, options.precision,
                                                   torch_device(options.device));
  } else {
    model.layers =
        std::make_unique<CpuEncoder>(options.encoder, *std::move(weights), options.precision);
  }
  return model;
}

}  // namespace

struct Encoder::Parts {
  EncoderOptions options;
  Model model;
  std::uint64_t weights_bytes = 0;
  std::uint64_t load_peak_bytes = 0;
};

Encoder::Encoder(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
// Freed under an account of its own, as the weights were counted under one: the process-wide count
// never had them.
Encoder::~Encoder() {
  const auto device = parts_->options.device;
  if (runs_as_gpu(device)) device_weights_bytes -= parts_->weights_bytes;
  {
    const LoadAccount account;  // as it was loaded
    parts_.reset();
  }
  give_memory_back(device);
}

Result<std::unique_ptr<Encoder>> Encoder::load(const EncoderOptions& options) {
  if (options.precision == Precision::Int8 && runs_as_gpu(options.device)) {
    return Error{ErrorKind::Unsupported,
                 "encoders are computed in int8 on CPUs only: on a GPU use fp32, bf16 or fp16"};
  }
  if (runs_as_gpu(options.device)) {
    MUSTER_TRY(open_gpu(options.device));
  } else if (options.device != DeviceKind::Cpu) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("encoders do not run on this kind of device: {}",
                             device_kind_name(options.device))};
  }
  MUSTER_TRY(check_precision(options));

  count_memory();
  std::optional<Result<Model>> model;
  MemoryUse use;
  // In a lane of its own: packing and the self-test must see the thread settings that `encode` will
  // have, and the caller's thread keeps its own.
  std::jthread([&] {
    enter_lane();
    const LoadAccount account;
    model = guarded([&] {
      const c10::InferenceMode inference;
      return make_model(options);
    });
    use = account.use();
  }).join();
  if (!*model) give_memory_back(options.device);  // what it had until then
  auto parts = std::make_unique<Parts>();
  parts->options = options;
  parts->model = MUSTER_TRY(*std::move(model));
  const auto& layers = *parts->model.layers;
  if (options.device == DeviceKind::Cpu) {
    parts->weights_bytes = use.live_bytes + layers.mapped_bytes();
    parts->load_peak_bytes = use.peak_bytes - use.live_bytes;
  } else {
    parts->weights_bytes = layers.device_bytes();
    device_weights_bytes += parts->weights_bytes;
    restart_peak(torch_device(options.device));
  }
  return std::unique_ptr<Encoder>(new Encoder(std::move(parts)));
}

Status Encoder::encode(const TextBatch& batch, std::span<float> rows) const {
  LaneSeat alone;
  return encode(batch, rows, alone);
}

Status Encoder::encode(const TextBatch& batch, std::span<float> rows, LaneSeat& seat) const {
  const auto& options = parts_->options;
  const auto& [layers, head] = parts_->model;
  const std::size_t width = dim();
  MUSTER_TRY(check_batch(options.encoder, batch, rows.size(), {batch.lengths.size(), width}));
  return guarded([&]() -> Status {
    const c10::InferenceMode inference;
    const RowForm form{options.pooling, options.normalize, head ? &*head : nullptr};
    for_each_pass(batch, layers->tokens_per_pass(), [&](std::size_t first, const TextBatch& part) {
      const auto part_rows = rows.subspan(first * width, part.lengths.size() * width);
      layers->make_rows(part, form, part_rows, seat);
    });
    return Done{};
  });
}

Status Encoder::last_hidden_state(const TextBatch& batch, std::span<float> hidden) const {
  const std::size_t hidden_size = parts_->options.encoder.hidden_size;
  MUSTER_TRY(
      check_batch(parts_->options.encoder, batch, hidden.size(), {batch.ids.size(), hidden_size}));
  return guarded([&]() -> Status {
    const c10::InferenceMode inference;
    auto* to = hidden.data();
    const auto& layers = *parts_->model.layers;
    LaneSeat alone;
    for_each_pass(batch, layers.tokens_per_pass(), [&](std::size_t, const TextBatch& part) {
      const auto state = layers.last_hidden_state(part, alone);
      const std::size_t size = part.ids.size() * hidden_size;
      std::memcpy(to, state.const_data_ptr(), size * sizeof(float));
      to += size;
    });
    return Done{};
  });
}

std::uint32_t Encoder::dim() const {
  const auto& options = parts_->options;
  return options.rerank ? options.rerank->label_count : options.encoder.hidden_size;
}

std::uint64_t Encoder::weights_bytes() const { return parts_->weights_bytes; }

std::uint64_t Encoder::load_peak_bytes() const { return parts_->load_peak_bytes; }

std::uint64_t Encoder::activation_peak_bytes() const {
  if (parts_->options.device == DeviceKind::Cpu) return memory_use().peak_bytes;
  std::uint64_t peak = 0;
  (void)guarded([&]() -> Status {
    peak = device_memory_use(torch_device(parts_->options.device)).peak_bytes;
    return Done{};
  });
  return peak - std::min(peak, device_weights_bytes.load());
}

std::size_t Encoder::pass_tokens() const { return parts_->model.layers->tokens_per_pass(); }

std::span<const std::uint32_t> Encoder::row_counts() const {
  return parts_->model.layers->row_counts();
}

}  // namespace muster::engine
