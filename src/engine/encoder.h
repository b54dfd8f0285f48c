#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/device.h"
#include "spec/encoder_spec.h"
#include "spec/precision.h"

namespace muster::engine {

class LaneSeat;

struct EncoderOptions {
  std::filesystem::path model_folder;
  EncoderSpec encoder;
  Pooling pooling = Pooling::Mean;
  bool normalize = false;
  Precision precision = Precision::Fp32;
  DeviceKind device = DeviceKind::Cpu;  // a GPU: the one that is visible to the process
  /// Of a cross-encoder: rows are the scores of its head, before their activation, instead of
  /// pooled vectors.
  std::optional<RerankSpec> rerank = std::nullopt;
};

/// Texts as packed token ids: text i is the next `lengths[i]` ids. No padding.
struct TextBatch {
  std::span<const std::uint32_t> ids;      // [sum of lengths]
  std::span<const std::uint32_t> lengths;  // [texts], each 1..EncoderSpec::length_max()
  /// [texts], or empty: how many ids of a text are of segment 0; 0, or no list: all are. Only a
  /// cross-encoder whose RerankSpec says so looks at it.
  std::span<const std::uint32_t> first_segments = {};
};

/// One encoder with its packed weights, ready to turn token ids into vectors.
///
/// A row depends only on its text and the equality class, never on the other texts of the batch,
/// their order, the lane or the number of lanes, those that compute it together included
/// (ops/lane_team.h): a product gives a row the same bits with any
/// number of rows (ours), or with those that a self-test at load has found (`row_counts()`);
/// attention is per sequence.
///
/// Threads: immutable after load; `encode` may run in several lanes at once, each a thread that has
/// called `enter_lane()`.
class Encoder {
 public:
  /// Maps the weights and packs them for the device; may take seconds for large models.
  ///
  /// Errors: NotFound and Corrupt from the weight files (a missing or misshapen tensor by name);
  /// Unsupported (a precision or device this machine cannot do); ResourceExhausted.
  static Result<std::unique_ptr<Encoder>> load(const EncoderOptions& options);

  /// A GPU has the memory back afterwards, as it has after a load that failed.
  ~Encoder();

  /// Shapes: rows [texts, dim] float32, row-major; of a cross-encoder dim is the label count.
  /// Errors: InvalidArgument (an id at or above vocab_size, a length of 0 or above the maximum,
  /// sizes that disagree); ResourceExhausted; Internal.
  ///
  /// On a CPU idle lanes of the seat's team help; without a seat the calling thread is alone.
  Status encode(const TextBatch& batch, std::span<float> rows, LaneSeat& seat) const;
  Status encode(const TextBatch& batch, std::span<float> rows) const;

  /// The last hidden state before pooling, for parity tests. Shapes: hidden [tokens, hidden_size]
  /// float32.
  Status last_hidden_state(const TextBatch& batch, std::span<float> hidden) const;

  std::uint32_t dim() const;

  /// What the weights take: on a CPU packed or copied, with the mapped tensors that are read in
  /// place; on a GPU in its memory.
  std::uint64_t weights_bytes() const;

  /// CPU: the most that loading held beside them, while matrices were packed and tested.
  std::uint64_t load_peak_bytes() const;

  /// The most memory that computing has held since the process began (a CPU) or since an encoder
  /// was loaded last (a GPU, in its memory), weights left out. Of all encoders of the process
  /// together.
  std::uint64_t activation_peak_bytes() const;

  /// How many tokens are computed at once, give or take a text. On a GPU fewer while its memory is
  /// short, and more again when it is not.
  std::size_t pass_tokens() const;

  /// The row counts that the self-test allowed, ascending; none where products take any number.
  std::span<const std::uint32_t> row_counts() const;

 private:
  struct Parts;
  explicit Encoder(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

/// Makes the calling thread a lane: one thread for every operator, denormals flushed alike in all
/// lanes. A GPU's lane takes a stream of its own; an encoder has been loaded there.
void enter_lane(DeviceKind device = DeviceKind::Cpu);

/// What of this machine, build and library can change a bit of a result on `device`: instruction
/// set in use, torch version, engine version; for CUDA the device model too. Part of the equality
/// class.
std::string engine_class(DeviceKind device);

/// "2.11.0+cu130".
std::string torch_version();

/// The precisions worth trying on this device, fp32 first; by capability, not by name. Never int8,
/// which every CPU has and nobody gets without asking.
std::vector<Precision> precisions_to_try(DeviceKind device);

}  // namespace muster::engine
