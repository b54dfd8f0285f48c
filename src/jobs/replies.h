#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "chat/template_variables.h"
#include "jobs/corpus.h"
#include "jobs/decoder_cache.h"
#include "spec/device.h"
#include "spec/generation.h"

namespace muster {

/// What `muster generate --prompts` is asked to do; every field is already checked for form by the
/// caller.
struct RepliesOptions : CorpusOptions {
  std::filesystem::path source;       // a GGUF file or a folder in Hugging Face's layout
  std::optional<std::string> system;  // what the template is told before each prompt
  TemplateVariables template_variables = {};
  bool is_raw = false;              // prompts as they are, without the model's chat template
  std::uint32_t token_limit = 512;  // of a reply
  std::vector<std::string> stops;   // texts that end a reply; they are left out of it
  bool ignores_stop_ids = false;    // tokens that end a reply do not
  SamplingOptions sampling;         // its seed is the run's: reply_seed.h
  DecoderPrecision precision = DecoderPrecision::Own;
  std::string precision_reason;  // why, where nobody has named it
  KvCacheDtype kv_cache_dtype = KvCacheDtype::Auto;
  bool has_prefix_cache = true;           // prompts begin where earlier ones have been
  std::uint32_t drafted_tokens_most = 0;  // as DecoderFleetOptions
  std::vector<Device> devices;            // a worker each, with all cores of its device
  WorkerMemory memory;                    // of the device that has the least
  std::filesystem::path worker_program;
  std::filesystem::path torch_root;
};

struct RepliesReport : CorpusReport {
  std::uint64_t cached_token_count = 0;  // of prompts: not computed, as earlier ones began so
  DecoderPrecision precision = DecoderPrecision::Own;
  std::string precision_reason;                      // of the options
  KvCacheDtype kv_cache_dtype = KvCacheDtype::Auto;  // of the options
};

/// What the run was computed in that `options.resume` goes on with, or finds finished: where nobody
/// names a precision it is that one, whatever a measurement would say now. nullopt: there is none.
std::optional<DecoderPrecision> earlier_precision(const RepliesOptions& options);

/// Whether the run may begin, for who has something long to do before it, as a measurement: its
/// flags go together, and nothing stands in the way of its output. Changes nothing.
///
/// Errors: those of check_run_flags (jobs/corpus_run.h) and take_output (jobs/output_taking.h).
Status check_may_begin(const RepliesOptions& options);

/// Whether replies can be written under that name. Errors: InvalidArgument for another ending.
Status check_replies_name(const std::filesystem::path& out);

/// Continues the prompts of a corpus on all devices: a line for each in input order (reply_line.h).
/// A reply depends on its prompt, its place in the input and the options alone, and survives the
/// death of any worker.
///
/// A prompt that cannot be answered is a bad record: one that is longer than the context, that the
/// chat template refuses, or that three workers have ended with.
/// `cancelled` and errors are those of `embed_corpus`; Corrupt where the model's files have changed
/// meanwhile.
Result<RepliesReport> generate_replies(const RepliesOptions& options, const CorpusEvents& events,
                                       const Clock& clock, const std::function<bool()>& cancelled);

}  // namespace muster
