#include "common/command.hpp"

#include <meshpost/base/config.hpp>
#include <meshpost/base/error.hpp>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <new>

namespace meshpost::apps {
namespace {

bool is_refused(Meanings const& meanings, std::string const& option) {
  return std::ranges::any_of(meanings.refused,
                             [&](Refused const& one) { return one.option == option; });
}

// Accepted with a value or without, as users may write either.
void forbid(CLI::App& app, std::string const& option, std::string const& reason) {
  app.add_option_function<std::vector<std::string>>(
         option,
         [option, reason](std::vector<std::string> const&) {
           throw CLI::ValidationError(option, reason + "; leave the option out");
         })
      ->expected(0, 1)
      ->group("");  // not in --help
}

}  // namespace

bool Common::shows_progress() const {
  return progress == "always" || (progress == "auto" && isatty(STDERR_FILENO) == 1);
}

void add_common(CLI::App& app, std::string const& name, Common& common, Meanings const& meanings) {
  app.option_defaults()->take_last();
  app.add_option("--devices", common.devices,
                 "cpu:4 (how many), cuda:0,1 (which), cuda (all), cuda:0*4 (each split in 4)");
  if (!is_refused(meanings, "--ranks"))
    app.add_option("--ranks", common.ranks, "ranks of each device; 0: the device's default");
  if (!is_refused(meanings, "--check"))
    app.add_flag("--check,!--no-check", common.check, meanings.check + " (default)");
  app.add_option("--json", common.json, meanings.json);
  if (!is_refused(meanings, "--progress"))
    app.add_option("--progress", common.progress, "a bar: auto (on a terminal), always or never")
        ->check(CLI::IsMember({"auto", "always", "never"}));
  for (auto const& one : meanings.refused) forbid(app, one.option, one.reason);
  if (is_refused(meanings, "--check")) forbid(app, "--no-check", "nothing is checked here");
  for (auto const* option : {"--out", "--plot", "--no-plot"})
    forbid(app, option, "this program draws nothing, ./run app " + name + " does");
}

void refuse(std::string const& option, std::string const& why, std::string const& remedy) {
  throw Error(Kind::bad_argument, option, why, remedy);
}

int run_app(CLI::App& app, int argc, char** argv, Common& common, std::string const& name,
            std::string const& smaller, std::function<int()> const& work) {
  bool reading = true;
  try {
    auto const config = Config::from_environment();
    common.devices = config.devices, common.ranks = config.ranks;
    app.parse(argc, argv);
    reading = false;
    return work();
  } catch (CLI::ParseError const& error) {
    if (error.get_exit_code() != 0) std::fprintf(stderr, "%s: ", name.c_str());
    return app.exit(error) == 0 ? 0 : 2;
  } catch (Error const& error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    return reading || error.kind() == Kind::bad_argument ? 2 : 1;
  } catch (std::bad_alloc const&) {
    std::fprintf(stderr, "%s: the host's memory is used up; choose smaller %s\n", name.c_str(),
                 smaller.c_str());
    return 1;
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    return 1;
  }
}

}  // namespace meshpost::apps
