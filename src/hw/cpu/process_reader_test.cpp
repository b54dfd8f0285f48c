#include "hw/cpu/process_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "hw/testdata/tree.h"

namespace muster {
namespace {

// As the kernel writes it: 52 fields, of which utime, stime, starttime and rss count.
std::string stat_line(int pid, const std::string& command, int user, int system, int start,
                      int pages) {
  return fmt::format(
      "{} ({}) S 1 {} 1 0 -1 4194560 2090 12 3 0 {} {} 7 8 20 0 1 0 {} 18123456 {} "
      "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
      pid, command, pid, user, system, start, pages);
}

// Two CPUs that have counted so many ticks each, the parts that do not matter aside.
std::string machine_stat(int ticks) {
  return fmt::format(
      "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 {0} 0 0 50 0 0 0 0 7 0\ncpu1 0 {0} 0 50 0 0 0 "
      "0 0 0\nintr 1 2 3\n",
      ticks);
}

TEST(ParseProcessStat, TakesTheFieldsThatCount) {
  const auto stat = parse_process_stat(stat_line(4711, "python3", 120, 30, 777, 25));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 4711U);
  EXPECT_EQ(stat->parent_pid, 1U);
  EXPECT_EQ(stat->command, "python3");
  EXPECT_EQ(stat->cpu_ticks, 150U);
  EXPECT_EQ(stat->start_ticks, 777U);
  EXPECT_EQ(stat->memory_pages, 25U);
}

TEST(ParseProcessStat, AcceptsAnyBytesInACommand) {
  EXPECT_EQ(parse_process_stat(stat_line(1, "a) (b", 1, 1, 1, 1))->command, "a) (b");
  EXPECT_EQ(parse_process_stat(stat_line(1, "", 1, 1, 1, 1))->command, "");
}

TEST(ReadProcessStat, KnowsThisProcessAndNoneThatIsNotThere) {
  const auto self = read_process_stat(static_cast<std::uint32_t>(::getpid()));
  ASSERT_TRUE(self);
  EXPECT_EQ(self->pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(self->parent_pid, static_cast<std::uint32_t>(::getppid()));
  EXPECT_FALSE(read_process_stat(UINT32_MAX));
}

TEST(ParseProcessStat, RefusesWhatIsNone) {
  for (const auto* text : {"", "1", "1 (a)", "1 (a) S", "x (a) S 1 1 1 0 -1 1 1 1 1 0 1 1",
                           "1 (a) S p 1 1 0 -1 1 1 1 1 0 1 1 1 1 1 1 1 1 1 1 1",
                           "1 (a) S 1 1 1 0 -1 1 1 1 1 0 1 y 1 1 1 1 1 1 1 1 1 1"}) {
    EXPECT_FALSE(parse_process_stat(text)) << text;
  }
}

TEST(ProcessReader, TellsSharesOfACoreBetweenTwoLooks) {
  const TestTree tree;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  tree.write("proc/stat", machine_stat(100));
  tree.write("proc/10/stat", stat_line(10, "busy", 100, 0, 5, 3));
  tree.write("proc/11/stat", stat_line(11, "idle", 50, 50, 5, 7));
  tree.write("proc/12/stat", stat_line(12, "kworker", 9, 9, 5, 0));  // has no memory of its own
  tree.write("proc/self/stat", stat_line(13, "not a number", 1, 1, 1, 1));
  ProcessReader reader(tree.root());
  const auto first = reader.read(10);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].command, "idle") << "without shares, the larger one comes first";
  EXPECT_EQ(first[0].memory_bytes, 7 * page);
  EXPECT_EQ(first[0].cores, std::nullopt);

  tree.write("proc/stat", machine_stat(200));  // each CPU has counted 100 ticks more
  tree.write("proc/10/stat", stat_line(10, "busy", 220, 30, 5, 3));
  tree.write("proc/12/stat", stat_line(12, "kworker", 19, 9, 5, 0));
  const auto second = reader.read(10);
  ASSERT_EQ(second.size(), 3U);
  EXPECT_EQ(second[0].command, "busy");
  EXPECT_DOUBLE_EQ(*second[0].cores, 1.5);
  EXPECT_DOUBLE_EQ(*second[1].cores, 0.1);
  EXPECT_DOUBLE_EQ(*second[2].cores, 0.0);
  EXPECT_EQ(reader.read(2).size(), 2U);
}

TEST(ProcessReader, DoesNotTakeOneProcessForAnother) {
  const TestTree tree;
  tree.write("proc/stat", machine_stat(100));
  tree.write("proc/10/stat", stat_line(10, "first", 100, 0, 5, 3));
  ProcessReader reader(tree.root());
  reader.read(10);
  tree.write("proc/stat", machine_stat(200));
  tree.write("proc/10/stat", stat_line(10, "second", 180, 0, 150, 3));  // the pid is used again
  tree.write("proc/11/stat", stat_line(11, "new", 1, 0, 160, 3));
  for (const auto& process : reader.read(10)) EXPECT_EQ(process.cores, std::nullopt);
}

TEST(ProcessReader, NamesWhatAWorkerDoes) {
  using std::string_literals::operator""s;
  const TestTree tree;
  tree.write("proc/10/stat", stat_line(10, "muster-worker", 1, 0, 5, 3));
  tree.write("proc/10/cmdline",
             "bin/muster-worker\0--device\0cpu:1\0--socket-fd\0003\0--models\0bge,e5\0\0\0"s);
  tree.write("proc/11/stat", stat_line(11, "muster-worker", 1, 0, 5, 2));
  tree.write("proc/11/cmdline", "bin/muster-worker\0--device\0cpu:0\0--models\0.....\0"s);
  tree.write("proc/12/stat", stat_line(12, "python3", 1, 0, 5, 1));
  tree.write("proc/12/cmdline", "python3\0--device\0cpu:7\0"s);
  const auto processes = ProcessReader(tree.root()).read(10);
  ASSERT_EQ(processes.size(), 3U);
  EXPECT_EQ(processes[0].device, "cpu:1");
  EXPECT_EQ(processes[0].models, "bge,e5");
  EXPECT_EQ(processes[1].device, "cpu:0");
  EXPECT_EQ(processes[1].models, "") << "none is loaded yet";
  EXPECT_EQ(processes[2].device, "") << "somebody else's words";
}

TEST(ProcessReader, OfNothingIsNothing) {
  const TestTree tree;
  EXPECT_TRUE(ProcessReader(tree.root()).read(10).empty());
}

}  // namespace
}  // namespace muster
