#include "server/audit_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/full_disk_fixture.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

AuditEntry entry_of(const std::string& id) {
  return {.unix_seconds = 1'767'225'600.25,  // 2026-01-01, a quarter of a second later
          .request_id = id,
          .key_name = "ci",
          .client_name = "",
          .peer = "127.0.0.1:51234",
          .method = "POST",
          .path = "/v1/embeddings",
          .model = "mini",
          .text_count = 3,
          .token_count = 48,
          .status = 200,
          .milliseconds = 1.5,
          .bytes_in = 120,
          .bytes_out = 9000,
          .reason = ""};
}

TEST(AuditLine, HoldsWhatHappenedAndNoTexts) {
  EXPECT_EQ(audit_line(entry_of("a1"), 0),
            "{\"time\":\"2026-01-01T00:00:00.250Z\",\"request_id\":\"a1\",\"key\":\"ci\","
            "\"peer\":\"127.0.0.1:51234\",\"method\":\"POST\",\"path\":\"/v1/embeddings\","
            "\"model\":\"mini\",\"texts\":3,\"tokens\":48,\"status\":200,\"ms\":1.500,"
            "\"bytes_in\":120,\"bytes_out\":9000}\n");
}

TEST(AuditLine, NamesTheClientOfACertificate) {
  auto entry = entry_of("a1");
  entry.client_name = "jane";
  EXPECT_EQ(Json::parse(audit_line(entry, 0))["client"], "jane");
}

TEST(AuditLine, LeavesOutWhatIsNotKnownAndTellsOfDroppedLines) {
  AuditEntry entry;
  entry.status = 401;
  entry.reason = "the API key is not known";
  EXPECT_EQ(audit_line(entry, 7),
            "{\"time\":\"1970-01-01T00:00:00.000Z\",\"status\":401,\"ms\":0.000,\"bytes_in\":0,"
            "\"bytes_out\":0,\"reason\":\"the API key is not known\",\"dropped_before\":7}\n");
}

TEST(AuditLine, IsOneLineOfJsonWhateverAClientSends) {
  auto entry = entry_of("x");
  entry.path = "/v1/\n{\"a\":\"\\\x01\xff\xc3";
  entry.model = std::string(5000, 'm');
  const auto line = audit_line(entry, 0);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_LT(line.size(), 1000);
  const auto json = Json::parse(line);
  EXPECT_EQ(json["path"], "/v1/\n{\"a\":\"\\\x01\xEF\xBF\xBD\xEF\xBF\xBD");
}

class AuditLogTest : public testing::Test {
 protected:
  AuditLogTest() {
    std::string pattern = (fs::temp_directory_path() / "muster-audit-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~AuditLogTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  fs::path path() const { return folder_ / "audit.jsonl"; }

  static std::unique_ptr<AuditLog> open_log(const fs::path& file) {
    auto log = AuditLog::open(file);
    EXPECT_TRUE(log.has_value());
    return log ? std::move(*log) : nullptr;
  }

  // Ids of the lines of a file that are whole.
  static std::vector<std::string> ids_in(const fs::path& file) {
    std::vector<std::string> ids;
    for (const auto& line : split(*read_file(file), '\n')) {
      const auto json = Json::parse(line, nullptr, false);
      if (json.is_object()) ids.push_back(json["request_id"]);
    }
    return ids;
  }

  fs::path folder_;
};

TEST_F(AuditLogTest, WritesALineForEachEntryInOrder) {
  {
    const auto log = open_log(path());
    for (int i = 0; i < 3000; ++i) log->write(entry_of(std::to_string(i)));
  }
  const auto ids = ids_in(path());
  ASSERT_EQ(ids.size(), 3000);
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(ids[static_cast<std::size_t>(i)], std::to_string(i));
}

TEST_F(AuditLogTest, IsForItsOwnerAlone) {
  const auto log = open_log(path());
  EXPECT_EQ(fs::status(path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(AuditLogTest, AFileOfSomethingElseIsLeftAlone) {
  std::ofstream(path()) << "keys:\n";
  const auto log = AuditLog::open(path(), {});
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().kind, ErrorKind::InvalidArgument);
  std::string text;
  std::getline(std::ifstream(path()), text);
  EXPECT_EQ(text, "keys:");
}

TEST_F(AuditLogTest, AppendsToWhatIsThere) {
  for (const auto* id : {"first", "second"}) open_log(path())->write(entry_of(id));
  EXPECT_EQ(ids_in(path()), (std::vector<std::string>{"first", "second"}));
}

TEST_F(AuditLogTest, GoesOnInANewFileWhenTheOldOneIsRenamed) {
  const auto log = open_log(path());
  log->write(entry_of("before"));
  log->flush();
  fs::rename(path(), folder_ / "audit.1");
  log->write(entry_of("after"));
  log->flush();
  EXPECT_EQ(ids_in(folder_ / "audit.1"), std::vector<std::string>{"before"});
  EXPECT_EQ(ids_in(path()), std::vector<std::string>{"after"});
}

TEST_F(AuditLogTest, AFolderThatIsNotThereIsAnError) {
  const auto log = AuditLog::open(folder_ / "no" / "audit.jsonl");
  ASSERT_FALSE(log.has_value());
  EXPECT_EQ(log.error().kind, ErrorKind::NotFound);
}

TEST_F(AuditLogTest, CountsWhatAFullDiskDoesNotTake) {
  const auto log = open_log("/dev/full");
  log->write(entry_of("a"));
  log->flush();
  const auto status = log->status();
  EXPECT_EQ(status.dropped_count, 1);
  EXPECT_EQ(status.written_count, 0);
  ASSERT_TRUE(status.last_error);
  EXPECT_EQ(status.last_error->kind, ErrorKind::ResourceExhausted);
}

TEST_F(AuditLogTest, ALineThatAFullDiskCutsSpoilsNoOther) {
  const auto line_size = audit_line(entry_of("1"), 0).size();
  const auto log = open_log(path());
  {
    const FullDisk disk(line_size * 2 + 10);
    for (const auto* id : {"1", "2", "3", "4"}) log->write(entry_of(id));
    log->flush();
    EXPECT_EQ(log->status().dropped_count, 2);
  }
  log->write(entry_of("5"));
  log->flush();
  EXPECT_EQ(ids_in(path()), (std::vector<std::string>{"1", "2", "5"}));
  const auto lines = split(*read_file(path()), '\n');
  EXPECT_EQ(Json::parse(lines[3])["dropped_before"], 2) << "lines[2] is what was cut";
  EXPECT_FALSE(log->status().last_error);
}

// A pipe that nobody empties is a disk that takes nothing.
TEST_F(AuditLogTest, NeverWaitsAndSaysHowManyLinesAreMissing) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  constexpr std::uint64_t kCount = 3 * AuditLog::kQueueCapacity;
  auto log = open_log(pipe);
  for (std::uint64_t i = 0; i < kCount; ++i) log->write(entry_of(std::to_string(i)));
  const auto dropped = log->status().dropped_count;
  EXPECT_GE(dropped, kCount - 2 * AuditLog::kQueueCapacity - 1000);
  std::string text;
  ASSERT_EQ(::fcntl(reader.get(), F_SETFL, 0), 0);
  std::thread emptying([&] {
    char piece[65'536];
    for (ssize_t size = 1; size > 0; text.append(piece, static_cast<std::size_t>(size))) {
      size = ::read(reader.get(), piece, sizeof piece);
      if (size < 0) break;
    }
  });
  log->flush();
  log->write(entry_of("last"));
  log.reset();
  emptying.join();
  std::uint64_t told = 0, lines = 0;
  for (const auto& line : split(text, '\n')) {
    if (line.empty()) continue;
    const auto json = Json::parse(line);
    told += json.value("dropped_before", std::uint64_t{0});
    ++lines;
  }
  EXPECT_EQ(told, dropped);
  EXPECT_EQ(lines + told, kCount + 1);
}

// As a server's end has it: nobody may wait for a reader that has stopped reading.
TEST_F(AuditLogTest, ItsEndDoesNotWaitForAPipeThatNobodyEmpties) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  auto log = open_log(pipe);
  for (int i = 0; i < 5000; ++i) log->write(entry_of(std::to_string(i)));  // the pipe holds 64 KiB
  auto ended = std::async(std::launch::async, [&] { log.reset(); });
  EXPECT_EQ(ended.wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST_F(AuditLogTest, TellsOnceThatLinesAreLostAndOnceThatTheyAreNot) {
  std::vector<std::optional<ErrorKind>> told;
  std::uint64_t lost = 0;
  auto opened = AuditLog::open(path(), [&](const std::optional<Error>& error, std::uint64_t count) {
    told.push_back(error ? std::optional(error->kind) : std::nullopt);
    lost = count;
  });
  ASSERT_TRUE(opened);
  const auto log = std::move(*opened);
  const auto write = [&](const char* id) {
    log->write(entry_of(id));
    log->flush();
  };
  write("1");
  EXPECT_TRUE(told.empty());
  {
    const FullDisk disk(1);
    write("2");
    write("3");
  }
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0]);
  write("4");
  ASSERT_EQ(told.size(), 2U);
  EXPECT_FALSE(told[1]);
  EXPECT_EQ(lost, 2U);
  EXPECT_EQ(ids_in(path()), (std::vector<std::string>{"1", "4"}));
}

TEST_F(AuditLogTest, APipeThatNobodyReadsIsRefused) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto log = AuditLog::open(pipe);
  ASSERT_FALSE(log.has_value());
  EXPECT_EQ(log.error().kind, ErrorKind::Unavailable);
}

TEST_F(AuditLogTest, TakesEntriesFromManyThreads) {
  {
    const auto log = open_log(path());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&log, t] {
        for (int i = 0; i < 500; ++i) {
          log->write(entry_of(std::to_string(t) + "-" + std::to_string(i)));
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }
  const auto ids = ids_in(path());
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 2000);
}

}  // namespace
}  // namespace muster
