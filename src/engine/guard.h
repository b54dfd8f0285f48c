#pragma once

#include <c10/util/Exception.h>

#include <new>
#include <utility>

#include "base/result.h"

namespace muster::engine {

/// The seam between torch, which throws, and the rest of the program, which does not.
/// Every public function of `engine/` that can fail passes through here exactly once.
///
/// Errors: ResourceExhausted for memory of either kind, Internal for any other exception.
template <typename Work>
auto guarded(Work&& work) -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (const c10::OutOfMemoryError& error) {
    return Error{ErrorKind::ResourceExhausted, error.what_without_backtrace()};
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::ResourceExhausted, "the machine is out of memory"};
  } catch (const c10::Error& error) {
    return Error{ErrorKind::Internal, error.what_without_backtrace()};
  } catch (const std::exception& error) {
    return Error{ErrorKind::Internal, error.what()};
  }
}

}  // namespace muster::engine
