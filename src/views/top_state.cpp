// A key changes what is looked at and nothing else; what it asks of the world is handed back to the
// one who owns the screen.
// Everything is a function of state, event, layout and data, so it is tested without a terminal.
// Ending a process takes two keys, and the process is the one shown when the first was pressed.
// Any other key answers no.
#include "views/top_state.h"

#include <algorithm>

namespace muster {
namespace {

constexpr char32_t kFirstPrintable = 0x20;
constexpr char32_t kDelete = 0x7F;
constexpr std::size_t kFilterBytesMax = 64;

void append_utf8(std::string& text, char32_t code) {
  const auto add = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0U | (code >> 6U));
    add(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    add(0xE0U | (code >> 12U));
    add(0x80U | ((code >> 6U) & 0x3FU));
    add(0x80U | (code & 0x3FU));
  } else {
    add(0xF0U | (code >> 18U));
    add(0x80U | ((code >> 12U) & 0x3FU));
    add(0x80U | ((code >> 6U) & 0x3FU));
    add(0x80U | (code & 0x3FU));
  }
}

// By whole characters: a lone byte of UTF-8 would break the line.
void remove_last_character(std::string& text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0U) == 0x80U) {
    text.pop_back();
  }
  if (!text.empty()) text.pop_back();
}

void type_filter(TopState& state, const InputEvent& event) {
  switch (event.kind) {
    case InputKind::Enter:
      state.is_typing_filter = false;
      break;
    case InputKind::Escape:
      state.is_typing_filter = false;
      state.filter.clear();
      break;
    case InputKind::Backspace:
      remove_last_character(state.filter);
      break;
    case InputKind::Character: {
      const bool is_text = event.character >= kFirstPrintable && event.character != kDelete;
      if (is_text && state.filter.size() < kFilterBytesMax) {
        append_utf8(state.filter, event.character);
      }
      break;
    }
    default:
      break;
  }
}

constexpr std::ptrdiff_t kFar = 1'000'000;  // further than any list goes

// The element `steps` away from `chosen` in a list. Where none is chosen, a step down comes to the
// first one, a page down to the next page, and what goes up to the last.
std::optional<std::uint32_t> move_in(const std::vector<std::uint32_t>& list,
                                     std::optional<std::uint32_t> chosen, std::ptrdiff_t steps) {
  if (list.empty()) return std::nullopt;
  const auto size = static_cast<std::ptrdiff_t>(list.size());
  const auto found = chosen ? std::find(list.begin(), list.end(), *chosen) : list.end();
  auto from = static_cast<std::ptrdiff_t>(found - list.begin());
  if (found == list.end()) from = steps == 1 ? -1 : steps > 0 ? 0 : size;
  return list[static_cast<std::size_t>(std::clamp(from + steps, std::ptrdiff_t{0}, size - 1))];
}

void move(TopState& state, std::ptrdiff_t steps, const TopData& data) {
  if (state.page != TopPage::Processes) {
    state.device = move_in(shown_devices(data.snapshot, state), state.device, steps);
    return;
  }
  std::vector<std::uint32_t> pids;
  for (const auto& shown : shown_processes(data.snapshot, state)) {
    // One process may be on several devices.
    const auto pid = shown.pid();
    if (std::find(pids.begin(), pids.end(), pid) == pids.end()) pids.push_back(pid);
  }
  state.pid = move_in(pids, state.pid, steps);
}

// The second click on a title turns the order round.
void sort_by(TopState& state, SortKey key) {
  state.is_reversed = state.sort == key && !state.is_reversed;
  state.sort = key;
}

void click(TopState& state, const InputEvent& event, const TopLayout& layout) {
  if (layout.title_row == event.row) {
    for (const auto& title : layout.titles) {
      if (event.column >= title.begin && event.column < title.end) sort_by(state, title.key);
    }
    return;
  }
  for (const auto& line : layout.lines) {
    if (line.row != event.row) continue;
    if (line.pid) {
      state.pid = line.pid;
    } else if (line.device) {
      state.device = state.device == line.device ? std::nullopt : line.device;
    }
  }
}

// Nothing of a recording or a simulation can be ended, and nothing that has no number here.
void ask_to_end(TopState& state, const TopData& data) {
  if (data.replay) {
    state.notice = "these processes are recorded ones";
    return;
  }
  if (state.page != TopPage::Processes || !state.pid || *state.pid == 0) {
    state.notice = "choose a process first: p, then the arrows";
    return;
  }
  for (const auto& shown : shown_processes(data.snapshot, state)) {
    if (shown.pid() != *state.pid) continue;
    state.question = SignalQuestion{*state.pid, shown.command()};
    return;
  }
  state.notice = "this process has ended";
}

TopRequest answer(TopState& state, const InputEvent& event) {
  const auto question = *state.question;
  state.question.reset();
  const bool is_character = event.kind == InputKind::Character;
  if (is_character && event.character == 'y') {
    return {TopRequestKind::EndProcess, question.pid, question.command};
  }
  if (is_character && event.character == '9') {
    return {TopRequestKind::KillProcess, question.pid, question.command};
  }
  state.notice = "nothing was sent";
  return {};
}

// The key of a page that is shown already leads back to the devices.
void turn_to(TopState& state, TopPage page) {
  state.page = state.page == page ? TopPage::Devices : page;
  state.pid.reset();
}

void escape(TopState& state) {
  if (state.page != TopPage::Devices) {
    turn_to(state, TopPage::Devices);
  } else if (state.device) {
    state.device.reset();
  } else {
    state.filter.clear();
  }
}

TopRequest take_character(TopState& state, char32_t character, const TopData& data) {
  switch (character) {
    case 'q':
      return {.kind = TopRequestKind::Quit};
    case '?':
    case 'h':
      turn_to(state, TopPage::Help);
      break;
    case 'p':
      turn_to(state, TopPage::Processes);
      break;
    case 'e':
      turn_to(state, TopPage::Energy);
      break;
    case 's': {
      const auto next = (static_cast<std::size_t>(state.sort) + 1) % kSortKeyCount;
      state.sort = static_cast<SortKey>(next);
      state.is_reversed = false;
      break;
    }
    case 'r':
      state.is_reversed = !state.is_reversed;
      break;
    case '/':
      state.is_typing_filter = true;
      break;
    case 'k':
      ask_to_end(state, data);
      break;
    case ' ':
      if (data.replay) return {.kind = TopRequestKind::PlayOrStop};
      state.is_paused = !state.is_paused;
      break;
    case '+':
      if (data.replay) return {.kind = TopRequestKind::Faster};
      break;
    case '-':
      if (data.replay) return {.kind = TopRequestKind::Slower};
      break;
    default:
      break;
  }
  return {};
}

TopRequest take_event(TopState& state, const InputEvent& event, const TopLayout& layout,
                      const TopData& data) {
  const auto page = static_cast<std::ptrdiff_t>(layout.page_size);
  switch (event.kind) {
    case InputKind::Character:
      return take_character(state, event.character, data);
    case InputKind::Click:
      click(state, event, layout);
      break;
    case InputKind::Escape:
      escape(state);
      break;
    case InputKind::Up:
      move(state, -1, data);
      break;
    case InputKind::Down:
      move(state, 1, data);
      break;
    case InputKind::PageUp:
      move(state, -page, data);
      break;
    case InputKind::PageDown:
      move(state, page, data);
      break;
    case InputKind::Home:
      move(state, -kFar, data);
      break;
    case InputKind::End:
      move(state, kFar, data);
      break;
    case InputKind::Left:
      return {.kind = data.replay ? TopRequestKind::StepBack : TopRequestKind::None};
    case InputKind::Right:
      return {.kind = data.replay ? TopRequestKind::StepOn : TopRequestKind::None};
    case InputKind::Closed:
    case InputKind::Enter:
    case InputKind::Backspace:
    case InputKind::Resize:
      break;
  }
  return {};
}

}  // namespace

TopRequest handle_input(TopState& state, const InputEvent& event, const TopLayout& layout,
                        const TopData& data) {
  if (event.kind == InputKind::Resize) return {};
  if (event.kind == InputKind::Closed) return {.kind = TopRequestKind::Quit};
  state.notice.clear();
  if (state.question) return answer(state, event);
  if (state.is_typing_filter) {
    type_filter(state, event);
    return {};
  }
  return take_event(state, event, layout, data);
}

}  // namespace muster
