#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "jobs/embed.h"

namespace muster {

/// Settings and words of `muster embed` as the job's options. What costs least is looked at first,
/// so that a typing error is told before a driver or an interpreter has to start: names of model,
/// inputs and output, then devices, then the places of worker and torch.
///
/// Errors: those of find_model, TextReader::open, vector_format_of, parse_devices and places.h.
Result<EmbedOptions> embed_options(const CommandContext& context);

/// The part of the options that says where a model runs: devices, worker, torch, cache.
/// `devices`: as --devices names them.
Status fill_machine_options(const Config& config, const Clock& clock, const std::string& devices,
                            EmbedOptions& options);

/// The value of --out. Errors: InvalidArgument where there is none.
Result<std::string> out_file(const Arguments& arguments);

/// The input part of the options, for the commands that read texts.
TextReaderOptions input_options(const Config& config, std::vector<std::string> inputs);

}  // namespace muster
