#pragma once

#include <c10/core/Stream.h>

#include "base/result.h"
#include "standin/machine.h"

namespace muster::standin {

/// The devices of this process as torch's PrivateUse1, which has room for one such backend. They
/// are opened by the first call and never closed, since torch keeps addresses of theirs.
///
/// Errors: throws what CUDA's part of torch throws: c10::OutOfMemoryError, c10::AcceleratorError
/// with CUDA's number for a device that has failed, c10::Error for a use of memory without an
/// order. Threads: any.
Machine& machine();

/// Whether this process is the child of one that had the devices open: then it has neither their
/// memory nor their threads, and `machine` throws, as CUDA refuses such a process.
bool is_forked() noexcept;

/// How many there are; 0 where they cannot be opened.
std::size_t device_count() noexcept;

/// Throws the error of a call to the device.
void check(const Status& status, std::size_t device);

/// The device and stream that the calling thread has chosen, at first device 0 and its default
/// stream.
Place current_place();
/// The stream of another device than the current one.
Place current_place_of(std::size_t device);
void set_current_device(std::size_t device);
void set_current_stream(Place place);

/// A stream of torch's as a place, and back.
Place place_of(const c10::Stream& stream);
c10::Stream stream_at(Place place);

}  // namespace muster::standin
