#pragma once

#include <cstddef>
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
/// Errors: those of find_model, TextReader::open, vector_format_of, parse_devices, check_precision
/// and places.h.
Result<EmbedOptions> embed_options(const CommandContext& context);

/// The part of the options that says where a model runs: devices, worker, torch, cache.
/// `devices`: as --devices names them; the first `device_most` of them run it, all without one.
/// Where a GPU that they could mean is lost, it says so, and which run it.
Status fill_machine_options(const CommandContext& context, const std::string& devices,
                            std::optional<std::size_t> device_most, EmbedOptions& options);

/// Whether every device of the run computes in the precision that is asked for. Whether a CPU has
/// bf16 its worker knows.
///
/// Errors: InvalidArgument for own, which is of models that generate; Unsupported, naming the
/// device and what it computes in.
Status check_precision(const Config& config, const EmbedOptions& options);

/// Sets where the rows go, by --out and --output-format: a file, or standard output for "-".
///
/// Errors: InvalidArgument where --out is missing or has another ending, and for flags that do not
/// go together.
Status set_output(const CommandContext& context, EmbedOptions& options);

/// Whether what is written to standard output would go into one of the inputs (`>> in.txt`).
///
/// Errors: InvalidArgument, naming the input.
Status check_standard_output(const CorpusOptions& options);

/// The input part of the options, for the commands that read texts; `keep` is left empty.
TextReaderOptions input_options(const Config& config, std::vector<std::string> inputs);

/// The names in --keep, each once: `lang,year` names two fields, `a\,b` one with a comma in its
/// name.
///
/// Errors: InvalidArgument for an empty one or more than 64.
Result<std::vector<std::string>> kept_fields(const Arguments& arguments);

}  // namespace muster
