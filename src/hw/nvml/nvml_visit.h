#pragma once

#include <initializer_list>

#include "hw/nvml/nvml_library.h"

namespace muster {

/// Whether a device answers a question. It is learned from the first answer, so that what a device
/// does not offer is not asked again at every visit.
enum class NvmlOffer : std::uint8_t { Unknown, Offered, Absent };

/// What an answer to a question teaches. "Not supported" and a missing function settle it, and so
/// does an "invalid argument" to a first question about one of many values: an older driver does
/// not know that value.
NvmlOffer offer_after(NvmlOffer before, NvmlCode code, bool is_one_of_many);

/// One visit to a device: makes its calls and puts what they give into a sample.
///
/// After the answer "GPU is lost" no further call is made in the visit.
class NvmlVisit {
 public:
  NvmlVisit(const NvmlLibrary& library, CallWatch& watch, DeviceSample& sample)
      : library_(library), call_(watch), sample_(sample) {}
  NvmlVisit(const NvmlVisit&) = delete;
  NvmlVisit& operator=(const NvmlVisit&) = delete;
  ~NvmlVisit();

  const NvmlFunctions& functions() const { return library_.functions(); }
  TimePoint at() const { return sample_.at; }
  bool is_lost() const { return sample_.lost_reason.has_value(); }

  void set(Reading reading, double value) { sample_.readings.set(reading, value); }
  /// From a percentage; one that makes no sense is a failed reading.
  void set_percent(Reading reading, double percent);
  void set_processes(std::vector<GpuProcess> processes) {
    sample_.processes = std::move(processes);
  }

  /// Makes the call that `readings` come of, unless the device is known not to offer it, or lost.
  /// True: it succeeded. A failure is listed for each of the readings.
  template <typename Function, typename... Arguments>
  bool ask(NvmlOffer& offer, std::initializer_list<Reading> readings, const Function& function,
           Arguments... arguments) {
    return ask_as(false, offer, readings, function, arguments...);
  }

  /// The same for one value of many that the function knows.
  template <typename Function, typename... Arguments>
  bool ask_one_of_many(NvmlOffer& offer, std::initializer_list<Reading> readings,
                       const Function& function, Arguments... arguments) {
    return ask_as(true, offer, readings, function, arguments...);
  }

  /// The call alone, for those whose answers teach more than one thing.
  template <typename Function, typename... Arguments>
  NvmlCode call(const Function& function, Arguments... arguments) {
    return is_lost() ? kNvmlGpuIsLost : call_(function, arguments...);
  }

  /// Lists a failure and notices a loss; true when there is none. "Not supported" is no failure.
  bool accept(NvmlCode code, std::initializer_list<Reading> readings);

  /// The device is gone, with the driver's reason or ours.
  void lose(NvmlCode code);
  void lose(std::string reason);

 private:
  template <typename Function, typename... Arguments>
  bool ask_as(bool is_one_of_many, NvmlOffer& offer, std::initializer_list<Reading> readings,
              const Function& function, Arguments... arguments) {
    if (offer == NvmlOffer::Absent || is_lost()) return false;
    const NvmlCode code = call_(function, arguments...);
    offer = offer_after(offer, code, is_one_of_many);
    return offer != NvmlOffer::Absent && accept(code, readings);
  }

  const NvmlLibrary& library_;
  NvmlCaller call_;
  DeviceSample& sample_;
};

}  // namespace muster
