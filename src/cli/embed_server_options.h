#pragma once

#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "client/server_api.h"
#include "jobs/embed.h"

namespace muster {

/// The options of `muster embed --server`: a server that runs computes the rows. It is asked what
/// it serves; nothing of this machine but its files is looked at.
///
/// Errors: InvalidArgument, naming it, for a flag that says where or how a model runs here; those
/// of the inputs, of reaching the server and of choose_model.
Result<EmbedOptions> embed_server_options(const CommandContext& context);

/// Errors: InvalidArgument for a flag that only counts with --server. Threads: pure.
Status check_without_server(const Arguments& arguments);

/// Errors: InvalidArgument for a flag that the server has settled already. Threads: pure.
Status check_with_server(const Arguments& arguments);

/// The words of a command line that names a server, sorted out.
struct ServedWords {
  std::string model;
  std::vector<std::string> inputs;
};

/// The first word is the name of a served model, or an input when it is one and the server's model
/// needs no name.
///
/// Errors: NotFound where no model embeds, Unsupported for one that does not; those of
/// choose_model; InvalidArgument without an input.
Result<ServedWords> sort_served_words(const std::vector<ListedModel>& models,
                                      const std::vector<std::string>& words);

}  // namespace muster
