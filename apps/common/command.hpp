#pragma once
#include <meshpost/base/types.hpp>

#include <functional>
#include <string>
#include <vector>

// The command line that all applications have in common. Only a main.cpp and the sources that add
// options include CLI11: it takes seconds to compile.

namespace CLI {
class App;
}

namespace meshpost::apps {

/// The common options as given. For options that are not given, run_app() reads the environment.
struct Common {
  std::string devices;
  u32 ranks = 0;  ///< of each device; 0: the device's default
  bool check = true;
  std::string json;  ///< file for the figures; empty: none
  std::string progress = "auto";

  /// Says if a bar is drawn: "auto" draws one if standard error is a terminal.
  bool shows_progress() const;
};

/// A common option that means nothing to an application.
struct Refused {
  std::string option;  ///< "--ranks"
  std::string reason;  ///< "copies have no ranks"
};

/// The meaning of the common options in an application. An option without a meaning is refused.
struct Meanings {
  std::string check{}, json = "file for the figures";
  std::vector<Refused> refused{};
};

/// Adds --devices, --ranks, --check, --no-check, --json and --progress, and refuses each of
/// `meanings.refused` with its reason. Also refuses --out, --plot and --no-plot, which belong to
/// the Python front of this program. If an option is given twice, the last one counts. Call it
/// before other options are added, so that this holds for them too.
void add_common(CLI::App& app, std::string const& name, Common& common, Meanings const& meanings);

/// \throws Error(bad_argument) naming an option with its value, what is wrong with it and a remedy
[[noreturn]] void refuse(std::string const& option, std::string const& why,
                         std::string const& remedy);

/// Reads the environment and the command line, does `work` and returns its exit status. Returns 2
/// after a wrong argument or variable, and 1 after another error, each with a message. `smaller`:
/// the option that reduces memory use, such as "--size".
int run_app(CLI::App& app, int argc, char** argv, Common& common, std::string const& name,
            std::string const& smaller, std::function<int()> const& work);

}  // namespace meshpost::apps
