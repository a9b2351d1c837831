// meshpost-run: starts a program in several processes, on this host or on others.
#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "agent.hpp"
#include "options.hpp"
#include "supervisor.hpp"
#include "surroundings.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  launch::open_standard_streams();
  try {
    if (argc == 2 && std::string_view(argv[1]) == "--agent") return launch::Agent().run();
    launch::Options options;
    if (auto const status = launch::parse(argc, argv, options)) return *status;
    launch::Supervisor job(options);
    return job.run();
  } catch (launch::NotStarted const& error) {
    fmt::print(stderr, "meshpost-run: {}\n", error.what());
    return error.status();
  } catch (Error const& error) {
    fmt::print(stderr, "meshpost-run: {}\n", error.what());
    return error.kind() == Kind::bad_argument ? 2 : 1;
  } catch (std::exception const& error) {
    fmt::print(stderr, "meshpost-run: {}\n", error.what());
    return 1;
  }
}
