#include "standin/page_store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "standin/page_heap.h"

namespace muster::standin {
namespace {

// The words of VmFlags of the mapping that begins there. Source: Linux,
// Documentation/filesystems/proc.rst, /proc/PID/smaps.
std::string flags_of(const std::byte* begin) {
  const auto head = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(begin));
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.starts_with(head)) is_here = true;
    if (is_here && line.starts_with("VmFlags: ")) return line.substr(9) + " ";
  }
  return "";
}

TEST(PageStore, IsSeenByTheDeviceWhileTheHostSeesNothing) {
  const auto store = *PageStore::reserve(4 * kPageSize);
  store->set_device_access(kPageSize, kPageSize, PageStore::Access::ReadWrite);
  auto* const place = store->host_view() + kPageSize;
  *(place + store->device_offset()) = std::byte{7};
  store->set_host_access(kPageSize, kPageSize, PageStore::Access::Read);
  EXPECT_EQ(*place, std::byte{7});
  store->drop(kPageSize, kPageSize);
  EXPECT_EQ(*place, std::byte{0});
}

TEST(PageStore, KnowsItsAddresses) {
  const auto store = *PageStore::reserve(4 * kPageSize);
  auto* const last = store->host_view() + 4 * kPageSize - 1;
  EXPECT_TRUE(store->contains(last));
  EXPECT_FALSE(store->contains(last + 1));
  EXPECT_TRUE(store->device_view_contains(last + store->device_offset()));
  EXPECT_FALSE(store->device_view_contains(last));
  EXPECT_EQ(store->place_of(last), 4 * kPageSize - 1);
}

// A core file would read all of its 64 GiB, and so take them.
TEST(PageStore, IsInNoCoreFileAndInNoChild) {
  const auto store = *PageStore::reserve(4 * kPageSize);
  for (const auto* view : {store->host_view(), store->host_view() + store->device_offset()}) {
    const auto flags = flags_of(view);
    EXPECT_NE(flags.find(" dd "), std::string::npos) << flags;
    EXPECT_NE(flags.find(" dc "), std::string::npos) << flags;
  }
}

}  // namespace
}  // namespace muster::standin
