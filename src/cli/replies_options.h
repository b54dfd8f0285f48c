#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "jobs/replies.h"
#include "serving/decoder_memory.h"
#include "spec/device.h"

namespace muster {

/// Whether `generate` is asked for a file of prompts, and not for one.
bool has_many_prompts(const Arguments& arguments);

/// Whether the flags of `generate` go together: those of a corpus of prompts, and those of one
/// prompt.
///
/// Errors: InvalidArgument, naming the flag and what it is for.
Status check_prompt_flags(const CommandContext& context);

/// What a worker takes beside its keys and values, as a plan counts it (serving/decoder_memory.h);
/// 0 where that is not known: why a model cannot be read is told when it is loaded.
std::uint64_t bytes_beside_cache(const std::filesystem::path& source, DecoderPrecision precision,
                                 const DecoderPlace& place = {});

/// Settings and flags of `muster generate --prompts` as the job's options, but for the precision
/// and what depends on it. What costs least is looked at first: names of output, model and inputs,
/// then devices, then the places of worker and torch.
///
/// Errors: those of find_decoder_source, TextReader::open, decoder_flags.h and places.h;
/// InvalidArgument where --out is missing or has another ending, and for flags that do not go
/// together.
Result<RepliesOptions> replies_options(const CommandContext& context);

/// The one of a run's devices that is measured for all: that with the most cores, the first of
/// several such. A run has one precision, and decoder_devices gives it devices of one kind. Those
/// that are measured are CPUs, which one machine has of one model: they differ in their cores
/// alone. devices: never empty; they outlive what is returned.
const Device& device_to_measure(const std::vector<Device>& devices);

/// The rest of them: the precision that is named, else that of the run which --resume goes on with,
/// else what chosen_precision finds, which may have to be measured. Before that it is looked
/// whether the run may begin.
///
/// while_measuring: as chosen_precision.
/// Errors: those of check_may_begin; Cancelled after a signal that is caught.
Status settle_for_replies(const CommandContext& context,
                          const std::function<void(const std::string&)>& on_notice,
                          const std::function<void()>& while_measuring, RepliesOptions& options);

}  // namespace muster
