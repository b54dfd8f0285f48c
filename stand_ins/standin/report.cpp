// The file is made by whoever watches, so that two runs at once do not write into one. What cannot
// be mapped is not watched: a device works without.

#include "standin/report.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

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
  if (void* place = map_file(device)) numbers_ = new (place) StandinReport{};
  numbers_->memory_bytes = memory_bytes;
  numbers_->pid = static_cast<std::uint64_t>(::getpid());
}

Report::~Report() {
  if (numbers_ != &nowhere_) ::munmap(numbers_, sizeof(StandinReport));
}

}  // namespace muster::standin
