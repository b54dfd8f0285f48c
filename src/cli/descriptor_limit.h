#pragma once

namespace muster {

/// Lets this process open as many descriptors as its limits can ever allow: for programs that hold
/// thousands of connections. The soft limit is often 1024, for programs that use select(2).
///
/// What the system refuses stays as it is. Threads: of the whole process.
void raise_descriptor_limit();

}  // namespace muster
