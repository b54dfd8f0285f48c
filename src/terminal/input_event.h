#pragma once

#include <cstddef>
#include <cstdint>

namespace muster {

enum class InputKind : std::uint8_t {
  Character,  // `character` says which
  Enter,
  Escape,
  Backspace,
  Up,
  Down,
  Left,
  Right,
  PageUp,
  PageDown,
  Home,
  End,
  Click,   // at `row` and `column`
  Resize,  // the screen has another size from now on
  Closed,  // the terminal is gone
};

/// What somebody did at the terminal.
struct InputEvent {
  InputKind kind = InputKind::Character;
  char32_t character = 0;
  std::size_t row = 0;  // from 0
  std::size_t column = 0;
};

}  // namespace muster
