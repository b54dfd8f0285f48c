#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "terminal/canvas.h"
#include "terminal/input_event.h"

namespace muster {

/// The whole terminal of standard input and output, for as long as it lives: shows canvases, of
/// which only the cells that changed are sent, and takes keys and the mouse.
///
/// The terminal is as it was before once this is destroyed, and also when a signal that nobody
/// catches ends the process. At most one at a time. Threads: not thread-safe; owned by one loop.
class CursesScreen {
 public:
  struct Options {
    CharacterSet characters = CharacterSet::Utf8;
    bool has_color = true;
  };

  /// Errors: InvalidArgument: standard input or output is no terminal, or one that terminfo does
  /// not know.
  static Result<std::unique_ptr<CursesScreen>> open(const Options& options);
  ~CursesScreen();
  CursesScreen(const CursesScreen&) = delete;
  CursesScreen& operator=(const CursesScreen&) = delete;

  /// An empty canvas as large as the screen is now.
  Canvas canvas() const;

  void draw(const Canvas& canvas);

  /// What was done next; nullopt when `wait` is over or a signal came.
  std::optional<InputEvent> next_input(Duration wait);

 private:
  struct Terminal;

  CursesScreen(const Options& options, std::unique_ptr<Terminal> terminal);

  const CharacterSet characters_;
  const std::unique_ptr<Terminal> terminal_;
};

}  // namespace muster
