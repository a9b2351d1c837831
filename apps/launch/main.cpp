// meshpost-run: starts a program in several processes on this host.
#include <fmt/format.h>

#include <cstdio>

#include "options.hpp"
#include "supervisor.hpp"
#include "system.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  launch::open_standard_streams();
  try {
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
