// Everything that is said on standard error begins alike, so that it is known as muster's among the
// output of other programs.
#include "cli/messages.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "terminal/text_width.h"

namespace muster {

std::string message_line(Tone tone, std::string_view sentence, bool has_color) {
  std::string head = "muster:";
  Style style;
  if (tone == Tone::Error) style = kBad;
  if (tone == Tone::Warning) {
    head += " warning:";
    style = kWarning;
  }
  return fmt::format("{} {}\n", styled(head, style, has_color), printable(sentence));
}

void say(Tone tone, std::string_view sentence, ColorChoice color) {
  const auto terminal = inspect_terminal(STDERR_FILENO, color);
  fmt::print(stderr, "{}", message_line(tone, sentence, terminal.has_color));
}

}  // namespace muster
