#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/build_info.h"
#include "base/clock.h"
#include "base/result.h"
#include "coordinator/restart_policy.h"
#include "coordinator/step_watch.h"
#include "coordinator/worker_process.h"
#include "modelfile/decoder_hash.h"
#include "spec/device.h"
#include "spec/generation.h"
#include "wire/generation_messages.h"
#include "wire/messages.h"

namespace muster {

struct DecoderSessionOptions {
  Device device;
  std::filesystem::path worker_program;
  std::filesystem::path torch_root;
  std::string build;   // what the worker's Hello must say
  std::string source;  // a GGUF file or a folder
  DecoderPrecision precision = DecoderPrecision::Own;
  KvCacheDtype kv_cache_dtype = KvCacheDtype::Auto;
  std::uint64_t cache_bytes = 0;          // for keys and values
  bool has_prefix_cache = true;           // sequences begin behind what earlier ones have computed
  std::uint32_t drafted_tokens_most = 0;  // of each, as GenerationOptions::drafted_most
  /// A worker that owes tokens and says nothing for so long, and half a second more for each token
  /// of the step that it is at, counts as hung and is ended; sooner where its steps were measured
  /// (coordinator/step_watch.h).
  Duration silence_most = std::chrono::seconds(60);
};

/// What one reply (GenerateOptions) and a conversation (ConversationOptions) say of it alike.
template <typename Options>
DecoderSessionOptions session_options(const Options& options, std::uint64_t cache_bytes) {
  return {.device = options.device,
          .worker_program = options.worker_program,
          .torch_root = options.torch_root,
          .build = std::string(build_name()),
          .source = std::filesystem::absolute(options.source).string(),
          .precision = options.precision,
          .kv_cache_dtype = options.kv_cache_dtype,
          .cache_bytes = cache_bytes,
          .has_prefix_cache = options.has_prefix_cache,
          .drafted_tokens_most = options.drafted_tokens_most};
}

/// What is to be continued.
struct SequenceRequest {
  std::vector<std::uint32_t> ids = {};
  std::uint32_t token_limit = 0;
  std::vector<std::uint32_t> stop_ids = {};
  SamplingOptions sampling = {};
};

/// What becomes of sequences, told from within `step`. Every token is told once, in order.
struct DecoderSessionEvents {
  std::function<void(const DecoderReady&)> on_ready;  // again after each restart
  std::function<void(const GeneratedToken&)> on_token;
  std::function<void(std::uint64_t id, FinishReason)> on_finished;
  std::function<void(std::uint64_t id, const Error&)> on_failed;
  std::function<void(const std::string&)> on_notice;  // a sentence for people: the worker died
};

/// One worker that generates, and all that its sequences need to go on elsewhere: this side keeps
/// the prompt and every token that has come. When the worker dies it is started again and continues
/// each sequence behind its last token; sampling depends on seed and position alone, so what comes
/// is what would have come. Where the source has changed meanwhile it does not go on: that would be
/// another model's.
///
/// Threads: not thread-safe; owned by the loop that calls `step`.
class DecoderSession {
 public:
  /// Starts the worker; the decoder loads while the caller goes on.
  ///
  /// Errors: those of `WorkerProcess::start`.
  static Result<std::unique_ptr<DecoderSession>> start(DecoderSessionOptions options,
                                                       DecoderSessionEvents events,
                                                       const Clock& clock);
  ~DecoderSession();

  /// Asks for a continuation; what becomes of it is told by later steps. Its id there.
  std::uint64_t submit(SequenceRequest request);

  /// Nothing more is told of it.
  void cancel(std::uint64_t id);

  std::size_t pending_count() const { return sequences_.size(); }

  /// Waits up to `timeout` for something to happen and handles it.
  ///
  /// Errors: what makes every further token impossible: the decoder cannot be loaded (LoadFailed's
  /// own), the worker is of another build, it cannot be started or kept alive (Unavailable), or the
  /// source had changed when its worker was started again (Corrupt; each later step says so, too).
  Status step(Duration timeout);

  std::uint32_t restart_count() const { return restart_count_; }

  /// The worker's process; nullopt while none is there.
  std::optional<pid_t> worker_pid() const;

 private:
  struct Sequence {
    Generate request;  // grows with every token
  };

  DecoderSession(DecoderSessionOptions options, DecoderSessionEvents events, const Clock& clock);
  Status start_worker();
  Status check_source();
  Status wait(Duration timeout);
  Status read();
  Status on_frame(const FrameHeader& header, std::span<const std::byte> payload);
  Error of_source(const Error& error) const;
  Status on_hello(std::span<const std::byte> payload);
  Status on_step_begun(std::span<const std::byte> payload);
  Status on_tokens(std::span<const std::byte> payload);
  Status on_death();
  void end_if_hung(Duration timeout);
  void send(MessageType type, std::uint64_t id, std::vector<std::byte> payload);

  const DecoderSessionOptions options_;
  const DecoderSessionEvents events_;
  const Clock& clock_;
  const DecoderStamp stamp_;      // of the source, from before its first worker
  std::optional<Error> changed_;  // it is another one now
  RestartPolicy restarts_;
  std::unique_ptr<WorkerProcess> process_;  // nullptr: waits for restart_at_
  TimePoint restart_at_{};
  StepWatch watch_;        // of this worker
  TimePoint looked_at_{};  // whether it is hung
  bool is_ready_ = false;
  std::uint32_t length_max_ = 0;        // of the decoder; 0: not loaded yet
  std::uint32_t fruitless_deaths_ = 0;  // of its own fault, since the last token
  std::uint32_t barren_deaths_ = 0;     // by whoever's fault, since then
  std::uint32_t restart_count_ = 0;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Sequence> sequences_;
  std::string last_words_;  // of the worker's stderr
};

}  // namespace muster
