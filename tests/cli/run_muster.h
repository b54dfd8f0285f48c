#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace muster {

/// How a run of the program ended.
struct Finished {
  int exit_code = -1;  // 128 + signal if one ended it
  std::string out;
  std::string err;
};

/// Runs of build/bin/muster in a folder of their own, with an environment of nothing but PATH, HOME
/// and what a test adds, so that nothing of the machine leaks in.
class Muster {
 public:
  explicit Muster(const std::string& name);
  ~Muster();
  Muster(const Muster&) = delete;
  Muster& operator=(const Muster&) = delete;

  /// Writes a file into the folder, which is also the working folder of every run.
  void write(const std::string& name, const std::string& text) const;

  /// The text of a file in the folder; empty if there is none.
  std::string read(const std::string& name) const;

  /// Standard error of every later run goes to this terminal, and `Finished` has none of it.
  void show_errors_on(const std::string& terminal) { errors_name_ = terminal; }

  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  /// In the place of an earlier value.
  void set(const std::string& variable, const std::string& value);

  /// Standard input comes from the file `input` of the folder, and is closed for an empty name;
  /// standard output goes to `output`.
  Finished run(const std::vector<std::string>& arguments, const std::string& input = "/dev/null",
               const std::string& output = "stdout");

  /// The two halves of `run`, for tests that do something in between. Until the next start the file
  /// `stderr` of the folder is that of this program; `wait` has what the program itself has
  /// written.
  pid_t start(const std::vector<std::string>& arguments, const std::string& input = "/dev/null",
              const std::string& output = "stdout");
  Finished wait(pid_t pid) const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::string errors_name_ = "stderr";
  std::vector<std::string> environment_;
  std::map<pid_t, UniqueFd> errors_;  // standard error of each program, also of several at once
};

/// Arguments for `embed` and `search` that put the test worker in the place of the engine.
std::vector<std::string> with_test_worker(std::vector<std::string> arguments);

/// A model of a few kilobytes, with a real tokenizer.
std::string tiny_model();

/// Makes the folder `model` of the run's own: a decoder without weights, for counting_worker. Its
/// template puts the texts of all messages behind each other.
void write_tiny_decoder(const Muster& muster, const std::filesystem::path& model);

}  // namespace muster
