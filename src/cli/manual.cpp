// The manual is the help texts in another form, so that neither can say what the other does not.
// What a help text shows at a fixed width is left to the reader's terminal here. Every text of a
// spec goes through one function that escapes it: a dash that is not escaped becomes a hyphen,
// which cannot be pasted into a shell. Source: groff_man(7), mandoc_char(7).
#include "cli/manual.h"

#include <fmt/format.h>

#include <sstream>
#include <string_view>

#include "base/build_info.h"
#include "cli/arguments.h"
#include "cli/flag_text.h"
#include "config/schema.h"
#include "terminal/text_width.h"

namespace muster {
namespace {

// The date of the release that the page is about; mandoc wants one.
constexpr std::string_view kDate = "2026-11-24";

// A character beyond ASCII, as every roff takes it: "\[u2026]".
std::string named_character(std::string_view utf8) {
  constexpr unsigned kPayload = 0x3F;
  constexpr unsigned kPayloadBits = 6;
  // Of the first byte, as many bits less as it tells of bytes behind it.
  auto code = static_cast<unsigned char>(utf8.front()) & (0xFFU >> (utf8.size() + 1));
  for (const char next : utf8.substr(1)) {
    code = code << kPayloadBits | (static_cast<unsigned char>(next) & kPayload);
  }
  return fmt::format("\\[u{:04X}]", code);
}

std::string escaped(std::string_view character) {
  if (character.size() > 1) return named_character(character);
  switch (character.front()) {
    case '\\':
      return "\\e";
    case '-':
      return "\\-";  // a dash, not a hyphen
    case '\'':
      return "\\(aq";
    case '`':
      return "\\(ga";
    default:
      return std::string(character);
  }
}

// Text as roff reads it back: a backslash is an escape there, and a dot or an apostrophe at the
// start of a line a request.
std::string roff(std::string_view text) {
  std::string out;
  bool is_line_start = true;
  while (!text.empty()) {
    const auto character = text.substr(0, first_character_size(text));
    if (is_line_start && (character == "." || character == "'")) out += "\\&";
    out += escaped(character);
    is_line_start = character == "\n";
    text.remove_prefix(character.size());
  }
  return out;
}

void add_flag(const FlagText& flag, std::string& out) {
  out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(flag.head), roff(flag.text));
}

// The examples of a help text: commands to the first empty line, then sentences.
void add_examples(const std::string& examples, std::string& out) {
  std::istringstream lines(examples);
  std::string line;
  out += ".PP\nExamples:\n.PP\n.EX\n";
  while (std::getline(lines, line) && !line.empty()) out += roff(line) + "\n";
  out += ".EE\n";
  bool is_new = true;
  while (std::getline(lines, line)) {
    if (line.empty()) {
      is_new = true;
      continue;
    }
    if (is_new) out += ".PP\n";
    is_new = false;
    out += roff(line.substr(line.find_first_not_of(' '))) + "\n";
  }
}

// In the order of the help text, with the verbs first, which a help text shows in its usage line
// alone.
void add_command(const CommandSpec& spec, std::string& out) {
  out += fmt::format(".SS \"muster {}\"\n", spec.name);
  out += fmt::format("\\fBmuster {}\\fR{}{}\n", spec.name, spec.usage.empty() ? "" : " ",
                     roff(spec.usage));
  out += fmt::format(".PP\n{}.\n", roff(spec.summary));
  for (const auto& verb : spec.verbs) {
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(verb.name), roff(verb.help));
  }
  for (const auto& group : spec.groups) {
    // `config` takes every setting; they are explained where they count.
    if (spec.name == "config" && !group.settings.empty()) continue;
    out += fmt::format(".PP\n{}:\n", roff(group.title));
    for (const auto& flag : group.flags) add_flag(flag_text(flag), out);
    for (const auto id : group.settings) add_flag(flag_text(setting_of(id)), out);
  }
  add_examples(spec.examples, out);
}

struct ExitCode {
  int code;
  std::string_view when;
};

// Source: docs/errors.md.
constexpr ExitCode kExitCodes[] = {
    {0, "done"},
    {2, "wrong words, settings or input: the caller can mend it"},
    {3, "something is not there: a file, a model, a device"},
    {4, "well formed, but this build or machine cannot do it"},
    {5, "the time allowed ran out"},
    {6, "a peer, driver or program is gone, or another process holds the file"},
    {7, "a file or message breaks its own format"},
    {8, "a stated limit is reached: memory, disk, queue; \"muster plan\": the model does not fit"},
    {9, "someone asked to stop"},
    {10, "a fault of muster"},
    {20, "\"muster doctor\": warnings"},
    {21, "\"muster doctor\": a device or program is unfit"},
    {130, "Ctrl-C; the last line says how to go on"},
    {141, "the reader of standard output has gone"},
    {143, "SIGTERM, as Ctrl-C"},
};

void add_rest(std::string& out) {
  out +=
      ".SH ENVIRONMENT\n"
      "Every setting has a variable: MUSTER_DEVICES is \\fB\\-\\-devices\\fR. A flag wins over a "
      "variable, a variable over the file.\n"
      ".PP\n"
      "HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE mean what they mean to\n"
      "huggingface_hub. NO_COLOR turns colours off.\n"
      ".SH FILES\n"
      ".TP\n"
      "\\fImuster.yaml\\fR\n"
      "settings, in the working folder, or where \\fB\\-\\-config\\fR says\n"
      ".TP\n"
      "\\fI~/.cache/huggingface/hub\\fR\n"
      "models, in the layout of huggingface_hub\n"
      ".TP\n"
      "\\fI~/.cache/muster\\fR\n"
      "measured precisions and known answers of models\n"
      ".SH EXIT STATUS\n";
  for (const auto& [code, when] : kExitCodes) {
    out += fmt::format(".TP\n{}\n{}\n", code, roff(when));
  }
}

}  // namespace

std::string manual_page(std::span<const Command> commands) {
  auto out = fmt::format(".TH MUSTER 1 \"{}\" \"muster {}\" \"User Commands\"\n", kDate, version());
  out +=
      ".SH NAME\n"
      "muster \\- run AI work on every device of this machine\n"
      ".SH SYNOPSIS\n"
      "\\fBmuster\\fR \\fICOMMAND\\fR [\\fIWORD\\fR...] [\\fIFLAG\\fR...]\n"
      ".SH DESCRIPTION\n"
      "Results go to standard output, everything else to standard error; \\fB\\-\\-json\\fR is "
      "for\n"
      "programs. \\fBmuster\\fR \\fICOMMAND\\fR \\fB\\-\\-help\\fR explains a command.\n"
      ".PP\n"
      "Every command takes:\n";
  for (const auto& flag : common_flags()) add_flag(flag_text(flag), out);
  out += ".SH COMMANDS\n";
  for (const auto& command : commands) add_command(command.spec, out);
  add_rest(out);
  return out;
}

}  // namespace muster
