#pragma once

#include "base/result.h"
#include "chat/decoder_text.h"
#include "cli/command.h"

namespace muster {

/// `muster tokenize MODEL --chat FILE`: a line with the text of a conversation, its ids, and the
/// ids that end a reply.
///
/// The file holds a list of messages, or an object of `messages`, and of `tools`, `documents`,
/// `add_generation_prompt` (true unless stated) and more variables of the template, as it likes.
/// Errors: those of the template and the files, each by its name.
Result<int> tokenize_chat(const DecoderText& text, const CommandContext& context);

/// `muster tokenize MODEL INPUT... --decode`: a line of text for each line of ids, `[1, 2]` or
/// `{"ids": [1, 2]}`; a null is passed on.
///
/// Errors: InvalidArgument for another line, with its file and number.
Result<int> decode_ids(const Tokenizer& tokenizer, const CommandContext& context);

/// Appends `[1,2]`.
void append_id_list(const std::vector<TokenId>& ids, std::string& line);

}  // namespace muster
