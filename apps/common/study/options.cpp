#include "common/study/options.hpp"

#include <CLI/CLI.hpp>

namespace meshpost::apps {

void add_study(CLI::App& app, std::string const& name, StudyOptions& options,
               Meanings const& meanings) {
  add_common(app, name, options, meanings);
  app.add_option("--against", options.against,
                 "communication of the other version, which has a kernel a step: copies (of this "
                 "library), mpi, nccl, auto (the fastest that there is), or none")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "copies", "mpi", "nccl", "none"}));
  app.add_option("--repetitions", options.repetitions, "runs of each version")
      ->capture_default_str()
      ->check(CLI::Range(1u, 100'000u));
  app.add_option("--output", options.output, "file for the result, as .npy");
  app.add_option("--trace", options.trace,
                 "file for the timeline of one more run of the one kernel");
}

}  // namespace meshpost::apps
