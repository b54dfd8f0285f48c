// Shows the ids that a model would see, through the code that `embed` uses. Each input line gives
// one output line, blank lines included, so that both files can be put side by side. Decoders are
// taken as well as encoders, because a tokenizer needs no weights.

#include <fmt/format.h>

#include <limits>

#include "chat/decoder_text.h"
#include "cli/command.h"
#include "cli/embed_options.h"
#include "cli/tokenize_decoder.h"
#include "dataset/text_reader.h"
#include "jobs/text_encoder.h"
#include "modelfile/model_folder.h"
#include "tokenizer/tokenizer.h"

namespace muster {
namespace {

constexpr std::size_t kInputsMost = 100'000;

CommandSpec tokenize_spec() {
  return {
      .name = "tokenize",
      .summary = "show the token ids of texts, a JSON line each",
      .usage = "MODEL INPUT... | MODEL --chat FILE",
      .positional_least = 1,
      .positional_most = kInputsMost,
      .groups = {{"Input", {SettingId::Field, SettingId::Format, SettingId::SkipBad}},
                 {"Model", {SettingId::MaxLength}},
                 {"Decoders",
                  {},
                  {{"--chat", "FILE", "a conversation as JSON, through the model's chat template"},
                   {"--template", "NAME", "another of the model's templates than the usual one"},
                   {"--decode", "", "the other way: INPUT holds lines of ids"},
                   {"--keep-special", "", "show special tokens in decoded texts"}}}},
      .examples =
          "  muster tokenize all-MiniLM-L6-v2 notes.txt\n"
          "  echo \"what becomes of this?\" | muster tokenize all-MiniLM-L6-v2 -\n"
          "  muster tokenize model.gguf --chat messages.json\n"
          "  muster tokenize model.gguf notes.txt | muster tokenize model.gguf - --decode\n"
          "\n"
          "MODEL is a folder, a name in the hub cache, or a GGUF file. The ids are those that\n"
          "the model would see: special tokens included, cut at --max-length. A skipped bad\n"
          "record gives {\"ids\":null}. A conversation is a list of messages, or an object of\n"
          "messages, tools, add_generation_prompt and what else its template reads.\n",
      .words = {WordKind::Model, WordKind::File},
  };
}

/// What encodes texts: an encoder's tokenizer with its limit, or a decoder's without one.
///
/// Unlike `embed`, a tokenizer needs no table of positions: a larger limit than the model's is
/// fine, to see all ids of a long text.
struct Opened {
  std::shared_ptr<const Tokenizer> tokenizer;
  bool lowercase = false;
  std::uint32_t length_max = std::numeric_limits<std::uint32_t>::max();
};

bool is_gguf(std::string_view model) { return model.ends_with(".gguf"); }

Result<std::filesystem::path> source_of(const CommandContext& context) {
  const auto& model = context.arguments.positionals.front();
  if (is_gguf(model)) return std::filesystem::path(model);
  return find_model(model);
}

Result<Opened> open_tokenizer(const std::filesystem::path& path) {
  if (is_gguf(path.string())) {
    auto text = MUSTER_TRY(load_decoder_text(path));
    return Opened{std::move(text.tokenizer)};
  }
  const auto folder = read_model_folder(path);
  auto tokenizer = MUSTER_TRY(Tokenizer::load(path / "tokenizer.json"));
  if (folder) {
    return Opened{std::move(tokenizer), folder->sentence.lowercase, folder->sentence.length_max};
  }
  // Of another family than the encoders: a decoder has a tokenizer, too.
  if (folder.error().kind != ErrorKind::Unsupported) return folder.error();
  return Opened{std::move(tokenizer)};
}

Result<TextEncoder> open_encoder(const CommandContext& context) {
  const auto path = MUSTER_TRY(source_of(context));
  auto opened = MUSTER_TRY(open_tokenizer(path));
  const auto length_max = context.config.count(SettingId::MaxLength).value_or(opened.length_max);
  // Exactly the special tokens is allowed here, unlike in `embed`: it shows what they are.
  if (length_max < opened.tokenizer->special_token_count()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("--max-length must leave room for the special tokens, {}: {}",
                             opened.tokenizer->special_token_count(), length_max)};
  }
  return TextEncoder(std::move(opened.tokenizer), "", opened.lowercase, length_max);
}

/// Flags that go with one form of the command only, and inputs that a form needs.
Status check_form(const Arguments& arguments) {
  const auto refuse = [](std::string message) {
    return Error{ErrorKind::InvalidArgument, std::move(message)};
  };
  const bool has_inputs = arguments.positionals.size() > 1;
  if (arguments.has("--chat") && (has_inputs || arguments.has("--decode"))) {
    return refuse("--chat takes no INPUT and no --decode");
  }
  if (!arguments.has("--chat") && !has_inputs) return refuse("tokenize needs INPUT or --chat");
  if (arguments.has("--template") && !arguments.has("--chat")) {
    return refuse("--template needs --chat");
  }
  if (arguments.has("--keep-special") && !arguments.has("--decode")) {
    return refuse("--keep-special needs --decode");
  }
  return Done{};
}

Result<int> run_tokenize(const CommandContext& context) {
  const auto& words = context.arguments.positionals;
  MUSTER_TRY(check_form(context.arguments));
  if (context.arguments.has("--chat")) {
    const auto path = MUSTER_TRY(source_of(context));
    const auto text = MUSTER_TRY(load_decoder_text(path));
    return tokenize_chat(text, context);
  }
  if (context.arguments.has("--decode")) {
    const auto path = MUSTER_TRY(source_of(context));
    const auto opened = MUSTER_TRY(open_tokenizer(path));
    return decode_ids(*opened.tokenizer, context);
  }
  auto encoder = MUSTER_TRY(open_encoder(context));
  auto input = input_options(context.config, {words.begin() + 1, words.end()});
  input.takes_blank_lines = true;  // a line of ids for each, beside the input
  const auto reader = MUSTER_TRY(TextReader::open(std::move(input)));
  const bool skip_bad = context.config.is_on(SettingId::SkipBad).value_or(false);

  TextRecord record;
  std::vector<TokenId> ids;
  std::string line;
  while (MUSTER_TRY(reader->next(record))) {
    line.clear();
    if (record.fault) {
      if (!skip_bad) return stopping_fault(record);
      line = "{\"ids\":null}\n";
    } else {
      encoder.encode(record.text, ids);
      line += "{\"ids\":";
      append_id_list(ids, line);
      line += "}\n";
    }
    MUSTER_TRY(context.output.append(line));
  }
  return 0;
}

}  // namespace

Command tokenize_command() { return {tokenize_spec(), run_tokenize}; }

}  // namespace muster
