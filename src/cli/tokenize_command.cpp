#include <fmt/format.h>

#include <charconv>

#include "cli/command.h"
#include "cli/embed_options.h"
#include "dataset/text_reader.h"
#include "jobs/text_encoder.h"
#include "modelfile/model_folder.h"
#include "tokenizer/tokenizer.h"

namespace muster {
namespace {

constexpr std::size_t kInputsMost = 100'000;
constexpr std::size_t kIdSizeMax = 10;  // digits of 2^32 - 1

CommandSpec tokenize_spec() {
  return {
      .name = "tokenize",
      .summary = "show the token ids of texts, a JSON line each",
      .usage = "MODEL INPUT...",
      .positional_least = 2,
      .positional_most = kInputsMost,
      .groups = {{"Input", {SettingId::Field, SettingId::Format, SettingId::SkipBad}},
                 {"Model", {SettingId::MaxLength}}},
      .examples =
          "  muster tokenize all-MiniLM-L6-v2 notes.txt\n"
          "  echo \"what becomes of this?\" | muster tokenize all-MiniLM-L6-v2 -\n"
          "\n"
          "The ids are those that the model would see: special tokens included, cut at\n"
          "--max-length. A skipped bad record gives {\"ids\":null}.\n",
  };
}

void append_ids(const std::vector<TokenId>& ids, std::string& line) {
  line += "{\"ids\":[";
  char digits[kIdSizeMax];
  for (const auto id : ids) {
    if (line.back() != '[') line += ',';
    line.append(digits, std::to_chars(digits, digits + kIdSizeMax, id).ptr);
  }
  line += "]}\n";
}

// Unlike `embed`, a tokenizer needs no table of positions: a larger limit than the model's is fine,
// to see all ids of a long text.
Result<TextEncoder> open_encoder(const CommandContext& context) {
  const auto path = MUSTER_TRY(find_model(context.arguments.positionals.front()));
  const auto folder = MUSTER_TRY(read_model_folder(path));
  auto tokenizer = MUSTER_TRY(Tokenizer::load(path / "tokenizer.json"));
  const auto limit = context.config.count(SettingId::MaxLength);
  const auto length_max = limit.value_or(folder.sentence.length_max);
  if (length_max < tokenizer->special_token_count()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("--max-length must leave room for the special tokens, {}: {}",
                             tokenizer->special_token_count(), length_max)};
  }
  return TextEncoder(std::move(tokenizer), "", folder.sentence.lowercase, length_max);
}

Result<int> run_tokenize(const CommandContext& context) {
  const auto& words = context.arguments.positionals;
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
      append_ids(ids, line);
    }
    MUSTER_TRY(context.output.append(line));
  }
  return 0;
}

}  // namespace

Command tokenize_command() { return {tokenize_spec(), run_tokenize}; }

}  // namespace muster
