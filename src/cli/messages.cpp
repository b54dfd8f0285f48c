// Everything that is said on standard error begins alike, so that it is known as muster's among the
// output of other programs.
#include "cli/messages.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "terminal/text_wrap.h"

namespace muster {

std::string message_line(Tone tone, std::string_view sentence, const TerminalInfo& terminal) {
  const std::string_view head = tone == Tone::Warning ? "muster: warning: " : "muster: ";
  Style style;
  if (tone == Tone::Error) style = kBad;
  if (tone == Tone::Warning) style = kWarning;
  const auto lines = wrapped_where_wider(
      sentence, {.width = terminal.is_terminal ? terminal.width : kUnboundedWidth,
                 .head = head,
                 .indent = 2});
  return styled_start(lines, head.size() - 1, style, terminal.has_color);
}

// Not fmt::print, which throws where it cannot write.
void write_message(std::string_view lines) {
  (void)std::fwrite(lines.data(), 1, lines.size(), stderr);
}

void say(Tone tone, std::string_view sentence, ColorChoice color) {
  const auto terminal = inspect_terminal(STDERR_FILENO, color);
  write_message(message_line(tone, sentence, terminal));
}

}  // namespace muster
