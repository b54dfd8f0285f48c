// A file grows under a name of its own and is hashed while it is read and written; only bytes that
// match the hub's hash get the blob's name, after an fsync. What an earlier run left is read and
// hashed first. If the whole then turns out wrong, those old bytes are suspected once and all is
// fetched anew; bytes that all came in this run are refused. A server that ignores ranges, or sends
// another one, is noticed before its bytes are appended.

#include "hub/blob_download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// As huggingface_hub leaves them: whatever the umask of the user allows.
constexpr std::uint32_t kBlobMode = 0666;
constexpr std::size_t kReadBytes = 1U << 20U;

// HASH.incomplete: a file that grows, and the hash of what is in it.
class GrowingBlob {
 public:
  // Reads what an earlier run left. Errors: those of the system; Cancelled.
  static Result<GrowingBlob> open(const BlobRequest& request, const PullEvents& events,
                                  const std::function<void(std::uint64_t)>& on_size) {
    const auto path = request.folder.growing_blob(request.file);
    auto opened = MUSTER_TRY(open_regular_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, kBlobMode));
    GrowingBlob blob(request, std::move(opened.fd));
    std::vector<char> piece(kReadBytes);
    while (true) {
      const auto count = ::read(blob.fd_.get(), piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return system_error(path.string(), "read", errno);
      if (count == 0) break;
      blob.hash_.update({piece.data(), static_cast<std::size_t>(count)});
      blob.size_ += static_cast<std::uint64_t>(count);
      on_size(blob.size_);
      if (events.is_cancelled()) return Error{ErrorKind::Cancelled, "interrupted"};
    }
    if (blob.size_ > request.file.size) MUSTER_TRY(blob.begin_anew());
    return blob;
  }

  std::uint64_t size() const { return size_; }

  Status begin_anew() {
    if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) != 0) {
      return system_error(path().string(), "empty", errno);
    }
    hash_ = ContentHash(request_.file.hash_kind, request_.file.size);
    size_ = 0;
    return Done{};
  }

  Status append(std::string_view bytes) {
    MUSTER_TRY(write_all(fd_.get(), bytes, path()));
    hash_.update(bytes);
    size_ += bytes.size();
    return Done{};
  }

  // Whether all bytes are those that the hub states; call once they are as many.
  bool is_right() { return hash_.finish() == request_.file.hash; }

  Status finish() {
    const auto name = request_.folder.blob(request_.file);
    if (::fsync(fd_.get()) != 0) return system_error(path().string(), "write", errno);
    if (::rename(path().c_str(), name.c_str()) != 0) {
      return system_error(name.string(), "give it its name", errno);
    }
    return sync_folder(name.parent_path());
  }

  void remove() const {
    std::error_code ignored;
    fs::remove(path(), ignored);
  }

 private:
  GrowingBlob(const BlobRequest& request, UniqueFd fd)
      : request_(request), fd_(std::move(fd)), hash_(request.file.hash_kind, request.file.size) {}

  fs::path path() const { return request_.folder.growing_blob(request_.file); }

  BlobRequest request_;  // of references, which outlive this
  UniqueFd fd_;
  ContentHash hash_;
  std::uint64_t size_ = 0;
};

// The work on one file: attempts until it is whole.
class BlobDownload {
 public:
  BlobDownload(const BlobRequest& request, HubCaller& caller, const PullEvents& events,
               const std::function<void(std::uint64_t)>& on_size)
      : request_(request), caller_(caller), events_(events), on_size_(on_size) {}

  Result<std::uint64_t> run() {
    auto blob = MUSTER_TRY(GrowingBlob::open(request_, events_, on_size_));
    bool has_old_bytes = blob.size() > 0;
    RetryBook book;
    most_ = blob.size();
    while (true) {
      if (blob.size() == request_.file.size) {
        if (blob.is_right()) break;
        if (!has_old_bytes) return wrong_bytes(blob);
        // A disk that lost its power, or another program, may have spoilt what was left here.
        events_.on_notice(fmt::format("{}: what an earlier run left is damaged; beginning anew",
                                      request_.file.path));
        MUSTER_TRY(blob.begin_anew());
        has_old_bytes = false;
        on_size_(0);
        continue;
      }
      const auto end = MUSTER_TRY(attempt(blob, has_old_bytes));
      if (blob.size() == request_.file.size) continue;
      if (blob.size() > most_) book.note_gain();
      most_ = std::max(most_, blob.size());
      MUSTER_TRY(caller_.wait_to_retry(question(), end, book));
    }
    MUSTER_TRY(blob.finish());
    return received_;
  }

 private:
  HubQuestion question() const {
    return {.model = request_.model, .revision = request_.revision, .file = request_.file.path};
  }

  Result<TransferEnd> attempt(GrowingBlob& blob, bool& has_old_bytes) {
    const auto from = blob.size();
    bool has_begun = false;
    const auto on_bytes = [&](const TransferHead& head, std::string_view bytes) -> Status {
      if (head.status != 200 && head.status != 206) return Done{};  // words about a refusal
      if (!std::exchange(has_begun, true) && from > 0) {
        MUSTER_TRY(go_on(head, from, blob, has_old_bytes));
      }
      return take(bytes, blob);
    };
    auto end = MUSTER_TRY(
        caller_.file_once(request_.model, request_.commit, request_.file.path, from, on_bytes));
    // The range begins where nothing is: what is here is none of this file.
    if (end.fault == TransferFault::None && end.head.status == 416 && from > 0) {
      MUSTER_TRY(blob.begin_anew());
      has_old_bytes = false;
      on_size_(0);
    }
    return end;
  }

  // Part of the file is here, and the first bytes of an answer have come.
  Status go_on(const TransferHead& head, std::uint64_t from, GrowingBlob& blob,
               bool& has_old_bytes) {
    if (head.status == 200) {  // a server without ranges: it is all of it
      has_old_bytes = false;
      return blob.begin_anew();
    }
    const auto range = find_header(head.headers, "Content-Range").value_or("");
    if (is_content_range(range, from, request_.file.size)) return Done{};
    return Error{ErrorKind::Corrupt,
                 fmt::format("{}: asked for the bytes from {} on of {}, the hub sends \"{}\"",
                             request_.file.path, from, request_.file.size, range.substr(0, 100))};
  }

  Status take(std::string_view bytes, GrowingBlob& blob) {
    if (bytes.size() > request_.file.size - blob.size()) {
      blob.remove();
      return Error{ErrorKind::Corrupt,
                   fmt::format("{}: more bytes come than the hub states ({}); it is removed",
                               request_.file.path, request_.file.size)};
    }
    MUSTER_TRY(blob.append(bytes));
    received_ += bytes.size();
    on_size_(blob.size());
    return Done{};
  }

  Error wrong_bytes(const GrowingBlob& blob) const {
    blob.remove();
    return {ErrorKind::Corrupt,
            fmt::format("{}: its bytes are not those that the hub states ({} {}); it is removed",
                        request_.file.path,
                        request_.file.hash_kind == HashKind::Sha256 ? "SHA-256" : "git's SHA-1",
                        request_.file.hash)};
  }

  const BlobRequest& request_;
  HubCaller& caller_;
  const PullEvents& events_;
  const std::function<void(std::uint64_t)>& on_size_;
  std::uint64_t received_ = 0;
  std::uint64_t most_ = 0;  // that was ever here
};

}  // namespace

bool is_content_range(std::string_view text, std::uint64_t from, std::uint64_t size) {
  for (const auto& total : {std::to_string(size), std::string("*")}) {
    if (text == fmt::format("bytes {}-{}/{}", from, size - 1, total)) return true;
  }
  return false;
}

Result<std::uint64_t> download_blob(const BlobRequest& request, HubCaller& caller,
                                    const PullEvents& events,
                                    const std::function<void(std::uint64_t)>& on_size) {
  return BlobDownload(request, caller, events, on_size).run();
}

}  // namespace muster
