// ncurses knows every terminal; what it cannot do is give one back when a signal ends the process,
// so that is done here.
#include "terminal/curses_screen.h"

#include <fmt/format.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <string>
#include <string_view>

// Names as `move` and `timeout` must not become macros; wide characters are asked for by name.
#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <curses.h>

namespace muster {
namespace {

constexpr int kEscapeDelayMs = 25;  // a lone Esc is known to be one after so long
constexpr std::array kEndingSignals{SIGABRT, SIGBUS, SIGFPE, SIGHUP, SIGILL, SIGQUIT, SIGSEGV};

// What gives the terminal back. A signal handler reaches nothing but globals.
struct Restoration {
  std::array<char, 256> sequence{};
  std::size_t size = 0;
  termios mode{};
  std::array<struct sigaction, kEndingSignals.size()> handlers{};
};
Restoration restoration;

// Only what may be called in a signal handler: POSIX.1-2017, 2.4.3.
void restore_and_end(int signal_number) {
  [[maybe_unused]] const auto written =
      write(STDOUT_FILENO, restoration.sequence.data(), restoration.size);
  tcsetattr(STDIN_FILENO, TCSANOW, &restoration.mode);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

// Mouse reports off (xterm's own sequence, as terminfo has no name for it), then as terminfo says:
// attributes off, cursor on, the other screen.
void prepare_restoration() {
  std::string sequence = "\x1b[?1000l\x1b[?1006l";
  for (const auto* name : {"sgr0", "cnorm", "rmcup"}) {
    const char* text = tigetstr(name);
    // -1: the terminal has no such capability. Source: curs_terminfo(3X), tigetstr.
    if (text != nullptr && reinterpret_cast<std::intptr_t>(text) != -1) sequence += text;
  }
  restoration.size = std::min(sequence.size(), restoration.sequence.size());
  std::memcpy(restoration.sequence.data(), sequence.data(), restoration.size);
}

void catch_ending_signals() {
  struct sigaction action {};
  action.sa_handler = restore_and_end;
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i) {
    sigaction(kEndingSignals[i], &action, &restoration.handlers[i]);
  }
}

void release_ending_signals() {
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i) {
    sigaction(kEndingSignals[i], &restoration.handlers[i], nullptr);
  }
}

// A terminal can show UTF-8 although the locale it names is not installed.
void choose_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

// Role::Text is the pair 0 that cells have by themselves, so nothing is sent to tell them apart.
short pair_of(Role role) { return static_cast<short>(role); }
static_assert(static_cast<int>(Role::Text) == 0);

void prepare_colors() {
  start_color();
  use_default_colors();
  for (std::size_t i = 1; i < kRoleCount; ++i) {
    const auto role = static_cast<Role>(i);
    const auto color = color_of(role);
    constexpr int kManyColors = 256;
    const auto number = COLORS >= kManyColors ? color.of_256 : color.of_8;
    init_pair(pair_of(role), static_cast<short>(number), -1);
  }
}

// The wide characters of a cell, at most as many as curses keeps in one.
std::array<wchar_t, CCHARW_MAX + 1> wide(const std::string& text) {
  std::array<wchar_t, CCHARW_MAX + 1> characters{};
  std::mbstate_t state{};
  const char* rest = text.c_str();
  const auto count = std::mbsrtowcs(characters.data(), &rest, CCHARW_MAX, &state);
  if (count == static_cast<std::size_t>(-1)) characters = {L'?'};
  return characters;
}

std::optional<InputKind> key_kind(wint_t code) {
  switch (code) {
    case KEY_UP:
      return InputKind::Up;
    case KEY_DOWN:
      return InputKind::Down;
    case KEY_LEFT:
      return InputKind::Left;
    case KEY_RIGHT:
      return InputKind::Right;
    case KEY_PPAGE:
      return InputKind::PageUp;
    case KEY_NPAGE:
      return InputKind::PageDown;
    case KEY_HOME:
      return InputKind::Home;
    case KEY_END:
      return InputKind::End;
    case KEY_ENTER:
      return InputKind::Enter;
    case KEY_BACKSPACE:
      return InputKind::Backspace;
    case KEY_RESIZE:
      return InputKind::Resize;
    default:
      return std::nullopt;
  }
}

InputEvent character_event(wint_t character) {
  constexpr wint_t kEscape = 0x1B;
  constexpr wint_t kDelete = 0x7F;
  if (character == kEscape) return {.kind = InputKind::Escape};
  if (character == L'\n' || character == L'\r') return {.kind = InputKind::Enter};
  if (character == kDelete || character == L'\b') return {.kind = InputKind::Backspace};
  return {InputKind::Character, static_cast<char32_t>(character)};
}

std::optional<InputEvent> mouse_event() {
  MEVENT event{};
  if (getmouse(&event) != OK) return std::nullopt;
  if ((event.bstate & BUTTON4_PRESSED) != 0) return InputEvent{.kind = InputKind::Up};
  if ((event.bstate & BUTTON5_PRESSED) != 0) return InputEvent{.kind = InputKind::Down};
  if ((event.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED)) == 0) return std::nullopt;
  return InputEvent{InputKind::Click, 0, static_cast<std::size_t>(std::max(event.y, 0)),
                    static_cast<std::size_t>(std::max(event.x, 0))};
}

// What is there already; nullopt for nothing, or for something that has no meaning here.
std::optional<InputEvent> input_at_hand() {
  wint_t code = 0;
  const auto kind = wget_wch(stdscr, &code);
  if (kind == ERR) return std::nullopt;
  if (kind == OK) return character_event(code);
  if (code == KEY_MOUSE) return mouse_event();
  const auto key = key_kind(code);
  return key ? std::optional(InputEvent{.kind = *key}) : std::nullopt;
}

// Terminals send these while their keypad is not in the mode that terminfo describes.
// Source: ECMA-48, cursor up to cursor left.
void define_arrow_keys() {
  define_key("\x1b[A", KEY_UP);
  define_key("\x1b[B", KEY_DOWN);
  define_key("\x1b[C", KEY_RIGHT);
  define_key("\x1b[D", KEY_LEFT);
}

Error no_terminal(std::string_view which) {
  return Error{ErrorKind::InvalidArgument, fmt::format("{} is no terminal", which)};
}

}  // namespace

struct CursesScreen::Terminal {
  SCREEN* screen = nullptr;

  explicit Terminal(SCREEN* opened) : screen(opened) { catch_ending_signals(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    endwin();
    release_ending_signals();
    delscreen(screen);
  }
};

Result<std::unique_ptr<CursesScreen>> CursesScreen::open(const Options& options) {
  if (isatty(STDIN_FILENO) != 1) return no_terminal("standard input");
  if (isatty(STDOUT_FILENO) != 1) return no_terminal("standard output");
  if (options.characters == CharacterSet::Utf8) choose_utf8();
  tcgetattr(STDIN_FILENO, &restoration.mode);
  SCREEN* screen = newterm(nullptr, stdout, stdin);
  if (screen == nullptr) {
    const char* name = std::getenv("TERM");
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("terminfo does not know this terminal: TERM is {}",
                             name == nullptr ? "not set" : name)};
  }
  prepare_restoration();
  auto terminal = std::make_unique<Terminal>(screen);
  cbreak();
  noecho();
  nonl();
  curs_set(0);
  keypad(stdscr, true);
  nodelay(stdscr, true);
  set_escdelay(kEscapeDelayMs);
  define_arrow_keys();
  mouseinterval(0);
  mousemask(BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED, nullptr);
  if (options.has_color && has_colors()) prepare_colors();
  return std::unique_ptr<CursesScreen>(new CursesScreen(options, std::move(terminal)));
}

CursesScreen::CursesScreen(const Options& options, std::unique_ptr<Terminal> terminal)
    : characters_(options.characters), terminal_(std::move(terminal)) {}

CursesScreen::~CursesScreen() = default;

Canvas CursesScreen::canvas() const {
  return {static_cast<std::size_t>(std::max(getmaxx(stdscr), 1)),
          static_cast<std::size_t>(std::max(getmaxy(stdscr), 1)), characters_};
}

void CursesScreen::draw(const Canvas& canvas) {
  werase(stdscr);
  for (std::size_t row = 0; row < canvas.height(); ++row) {
    for (std::size_t column = 0; column < canvas.width(); ++column) {
      const auto& cell = canvas.cell(row, column);
      if (cell == Canvas::Cell{} || cell.text.empty()) continue;
      attr_t attributes = A_NORMAL;
      if (cell.style.is_bold) attributes |= A_BOLD;
      if (cell.style.is_reversed) attributes |= A_REVERSE;
      cchar_t character{};
      setcchar(&character, wide(cell.text).data(), attributes, pair_of(cell.style.role), nullptr);
      mvwadd_wch(stdscr, static_cast<int>(row), static_cast<int>(column), &character);
    }
  }
  wrefresh(stdscr);
}

std::optional<InputEvent> CursesScreen::next_input(Duration wait) {
  if (auto event = input_at_hand()) return event;
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  const auto wait_ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  poll(&input, 1, static_cast<int>(std::max<std::int64_t>(wait_ms, 0)));
  if ((input.revents & (POLLHUP | POLLERR)) != 0 && (input.revents & POLLIN) == 0) {
    return InputEvent{.kind = InputKind::Closed};
  }
  return input_at_hand();
}

}  // namespace muster
