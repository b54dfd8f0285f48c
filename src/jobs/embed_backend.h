#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "jobs/corpus_work.h"
#include "jobs/embed.h"
#include "scheduler/batch_queue.h"
#include "spec/precision.h"
#include "tokenizer/tokenizer.h"

namespace muster {

/// All of a model that can change a byte of a run's output, and what its report says of it.
struct EmbedModel {
  std::string path;    // its folder, on the machine that computes
  std::string server;  // empty: this machine's devices
  std::string hash;
  std::string pooling;  // "mean"
  bool normalize = false;
  std::string prompt_name;  // empty: none
  std::uint32_t length_max = 0;
  Precision precision = Precision::Fp32;
  std::string precision_reason;
  std::string equality_class;
  double measuring_seconds = 0;  // that were spent on the precision; 0: nothing was measured
};

/// What a run hears of its texts, from within `step`.
struct EmbedBackendEvents {
  /// The tokens of a text; before its row.
  std::function<void(ItemKey, const Tokenizer::Encoded&)> on_tokens;
  /// The row of a text: [dim] float32 as bytes (they may be unaligned). A device's are finite; a
  /// server's are as it sent them.
  std::function<void(ItemKey, std::span<const std::byte>)> on_row;
  /// This text alone cannot be computed.
  std::function<void(ItemKey, const Error&)> on_item_failed;
  std::function<void(const std::string&)> on_notice;
  /// What is done from now on, while it is opened: "starting workers".
  std::function<void(const std::string&)> on_phase = {};
};

/// Computes the rows of a run: the devices of this machine, or a server.
///
/// Threads: not thread-safe; owned by the loop of the run.
class EmbedBackend : public CorpusBackend {
 public:
  virtual const EmbedModel& model() const = 0;

  /// Values of a row; 0 as long as it is not known.
  virtual std::uint32_t dim() const = 0;
};

/// The model of a run on this machine's devices, without starting one: precision and equality class
/// are not settled. Errors: those of find_and_read and open_texts.
Result<EmbedModel> describe_local_model(const EmbedOptions& options);

/// The devices of this machine. Errors: those of open_session.
Result<std::unique_ptr<EmbedBackend>> open_local_backend(const EmbedOptions& options,
                                                         EmbedBackendEvents events,
                                                         const Clock& clock,
                                                         const std::function<bool()>& cancelled);

/// The server of `options.server`. Waits for a model that it is loading.
///
/// Errors: those of reaching it; NotFound, naming the nearest model that it serves; InvalidArgument
/// for a prompt that the model lacks; Unavailable for a model that it cannot load; Cancelled.
Result<std::unique_ptr<EmbedBackend>> open_remote_backend(const EmbedOptions& options,
                                                          EmbedBackendEvents events,
                                                          const Clock& clock,
                                                          const std::function<bool()>& cancelled);

}  // namespace muster
