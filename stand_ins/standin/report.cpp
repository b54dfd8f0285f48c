// The file is made by whoever watches, so that two runs at once do not write into one. What cannot
// be mapped is not watched: a device works without. XIDs are the driver's and outlive the process,
// so they are never set back, not even for a moment in which somebody looks.

#include "standin/report.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/unique_fd.h"

namespace muster::standin {
namespace {

void* map_file(const std::string& device) {
  const auto folder = environment_variable(kStandinReportsVariable.data());
  if (!folder) return nullptr;
  auto name = device;
  name.replace(name.find(':'), 1, "-");
  const UniqueFd file(::open((*folder + "/" + name).c_str(), O_RDWR | O_CLOEXEC));
  if (!file.is_open() || ::ftruncate(file.get(), sizeof(StandinReport)) != 0) return nullptr;
  void* place =
      ::mmap(nullptr, sizeof(StandinReport), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return place == MAP_FAILED ? nullptr : place;
}

}  // namespace

Report::Report(const std::string& device, std::uint64_t memory_bytes) {
  if (void* place = map_file(device)) numbers_ = static_cast<StandinReport*>(place);
  for (auto* count : {&numbers_->taken_bytes, &numbers_->busy_ns, &numbers_->kernels,
                      &numbers_->copies, &numbers_->bytes_to_device, &numbers_->bytes_to_host,
                      &numbers_->full, &numbers_->error, &numbers_->allocations}) {
    *count = 0;  // of an earlier process
  }
  numbers_->memory_bytes = memory_bytes;
  numbers_->pid = static_cast<std::uint64_t>(::getpid());
}

Report::~Report() {
  if (numbers_ != &nowhere_) ::munmap(numbers_, sizeof(StandinReport));
}

}  // namespace muster::standin
