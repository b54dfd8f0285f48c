#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/chat_template.h"
#include "chat/decoder_text.h"
#include "coordinator/decoder_fleet.h"
#include "jobs/decoder_trial.h"
#include "net/event_loop.h"
#include "serving/generation_call.h"
#include "serving/model_roster.h"
#include "serving/serve_options.h"
#include "spec/decoder_spec.h"

namespace muster {

/// The text side of a served decoder. Threads: immutable.
struct DecoderPrompts {
  DecoderText text;
  std::optional<ChatTemplate> chat_template;
  std::string why_no_template;  // without one

  /// The ids of what a call asks to be continued. Of a prompt that is longer than `length_most` no
  /// more is read than tells so: so many ids of any kind stand for all that are longer.
  ///
  /// Errors: InvalidArgument (the template's own refusal, a model without a template, nothing to
  /// continue), and those of ChatTemplate::render.
  Result<std::vector<std::uint32_t>> ids_of(const GenerationCall& call, std::uint32_t length_most,
                                            std::int64_t now_unix) const;

  /// The text of a prompt that is a text or ids; special tokens are shown.
  std::string text_of(const GenerationCall& call) const;

  /// A conversation as the model's template writes it. Errors: those of `ids_of`.
  Result<std::string> rendered(const GenerationCall& call, std::int64_t now_unix) const;
};

/// Whose reply a stream is.
struct StreamOwner {
  CallId call = 0;
  std::uint32_t choice = 0;  // of the call's
};

/// A decoder of a running server, as its calls need it.
struct ServingDecoder {
  std::uint64_t id = 0;  // never used twice
  std::string name;
  ModelRoster::Ticket ticket = {};
  ServedModel asked;
  std::string path;
  DecoderSpec spec;
  DecoderPrecision precision = DecoderPrecision::Own;
  bool is_precision_auto = false;     // it is to be measured: read_decoder does not
  std::string precision_reason = {};  // "asked for", or what was measured
  std::shared_ptr<const DecoderPrompts> prompts;
  std::vector<std::size_t> devices;  // of the server's, in the order of the fleet's groups
  std::uint32_t length_most = 0;     // tokens of a prompt and its reply, before a worker has told
  std::uint64_t planned_bytes = 0;   // of memory, each worker; 0: not known
  double created_unix_seconds = 0;
  std::uint64_t request_count = 0, prompt_token_count = 0, reply_token_count = 0;
  std::map<StreamId, StreamOwner> streams;
  std::unique_ptr<DecoderFleet> fleet;
  std::unique_ptr<EventLoop::Watch> watch;
  std::unique_ptr<EventLoop::Timer> timer;
  bool is_broken = false;   // its fleet can do no further work
  bool was_ready = false;   // as was told last
  bool is_leaving = false;  // unloaded: it goes when its last call has ended, or at the limit
  std::unique_ptr<EventLoop::Timer> leave_timer;
  /// Whoever waits for it to be loaded; empty: nobody.
  std::function<void(Result<ServedDecoderStatus>)> on_loaded;

  /// It is as good as named from now on.
  void take_precision(DecoderPrecisionChoice choice);
  std::uint32_t length_max() const;
  bool can_work() const;        // a device has it or may have it yet
  bool was_ever_ready() const;  // a device has had it
  /// It has a fleet.
  ServedDecoderStatus status(const std::vector<Device>& devices_of_server) const;
  /// What is known without one: all but its state and its devices.
  ServedDecoderStatus description() const;
};

/// The least `length_max` of a decoder: a token of a prompt, and one of its reply.
inline constexpr std::uint32_t kDecoderLengthLeast = 2;

/// What of a model's settings and files its calls need; the fleet is not started.
///
/// Errors: those of the files; InvalidArgument (a setting that decoders do not have), Unsupported
/// (fp16; own, int8 or a cache by name on a GPU; or no CPU among the devices). Threads:
/// thread-safe.
Result<std::unique_ptr<ServingDecoder>> read_decoder(const ServedModel& asked,
                                                     const std::vector<Device>& devices);

/// What a model's settings ask for that no decoder has, or none on these devices.
///
/// Errors: InvalidArgument, Unsupported, each naming the setting. Threads: pure.
Status check_decoder_settings(const ServedModel& asked, const std::vector<Device>& devices);

}  // namespace muster
