#pragma once

namespace muster {

/// From now on the first SIGINT or SIGTERM is only remembered, so that a job can end well; a second
/// one ends the process at once.
void catch_interrupts();

/// The signal that came (SIGINT, SIGTERM); 0 if none did.
int interrupt_signal();

/// It was acted on: the next one is the first again.
void forget_interrupt();

}  // namespace muster
