// The loop of the screen: keys and time, whichever comes first. A key is answered at once with the
// data that is there, and new data comes at its own interval; a key that moves a replay fetches at
// once. Signals are looked for a few times a second, since one may come just before the wait for a
// key begins and would not end it.

#include "cli/top_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "cli/interrupt.h"
#include "cli/process_signal.h"
#include "views/top_view.h"

namespace muster {
namespace {

// A signal may come just before waiting begins; then it is seen so much later.
constexpr Duration kSignalCheck = std::chrono::milliseconds(250);

std::string signal_notice(const TopSource& source, const TopRequest& request) {
  if (const auto refusal = source.signal_refusal()) return *refusal;
  const bool is_kill = request.kind == TopRequestKind::KillProcess;
  const auto sent = send_signal(request.pid, request.command, is_kill ? SIGKILL : SIGTERM);
  if (!sent) return sent.error().message;
  return fmt::format("{} was sent to {} {}", is_kill ? "SIGKILL" : "SIGTERM", request.pid,
                     request.command);
}

// What is shown and how; the frame of now.
class Session {
 public:
  Session(CursesScreen& screen, TopSource& source) : screen_(screen), source_(source) {}

  bool is_paused() const { return state_.is_paused; }

  // Without a new frame the last one stays: a driver that is slow leaves no empty screen.
  Status fetch() {
    auto frame = MUSTER_TRY(source_.frame());
    if (frame) data_ = std::move(*frame);
    return Done{};
  }

  void draw() {
    auto canvas = screen_.canvas();
    if (data_) {
      layout_ = draw_top(*data_, state_, canvas);
    } else {
      canvas.put(0, 0, "muster top  looking for devices; q quits", {.role = Role::Heading});
    }
    screen_.draw(canvas);
  }

  // False: the end is asked for.
  Result<bool> take(const InputEvent& event) {
    static const TopData nothing;
    const auto request = handle_input(state_, event, layout_, data_ ? *data_ : nothing);
    switch (request.kind) {
      case TopRequestKind::None:
        break;
      case TopRequestKind::Quit:
        return false;
      case TopRequestKind::EndProcess:
      case TopRequestKind::KillProcess:
        state_.notice = signal_notice(source_, request);
        break;
      default:
        source_.take(request.kind);
        MUSTER_TRY(fetch());
        break;
    }
    return true;
  }

 private:
  CursesScreen& screen_;
  TopSource& source_;
  std::optional<TopData> data_;
  TopState state_;
  TopLayout layout_;
};

}  // namespace

Status show_top(CursesScreen& screen, TopSource& source, const Clock& clock) {
  Session session(screen, source);
  MUSTER_TRY(session.fetch());
  session.draw();
  auto due = clock.now() + source.interval();
  while (interrupt_signal() == 0) {
    const auto wait = std::clamp(due - clock.now(), Duration(0), kSignalCheck);
    const auto event = screen.next_input(wait);
    if (event) {
      const bool goes_on = MUSTER_TRY(session.take(*event));
      if (!goes_on) return Done{};
      session.draw();
      due = std::min(due, clock.now() + source.interval());  // a replay may have begun to play
    }
    if (clock.now() < due) continue;
    if (!session.is_paused()) {
      MUSTER_TRY(session.fetch());
      session.draw();
    }
    due = clock.now() + source.interval();
  }
  return Done{};
}

}  // namespace muster
