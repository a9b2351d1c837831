#include "common/grid_text.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <vector>

#include "common/command.hpp"

namespace meshpost::apps {

Extents3 read_grid(std::string const& text, u32 fewest) {
  u64 extents[3] = {1, 1, 1};
  char const* at = text.data();
  char const* const end = at + text.size();
  for (u32 d = 0; d < 3; ++d) {
    auto const [stop, error] = std::from_chars(at, end, extents[d]);
    if (error != std::errc{} || extents[d] == 0) break;
    if (stop == end && d + 1 >= fewest) return {extents[0], extents[1], extents[2]};
    if (stop == end || *stop != 'x') break;
    at = stop + 1;
  }
  refuse("--grid " + text, "it is no grid",
         fewest == 3 ? "give the numbers along x, y and z, each from 1 on, with an x between them, "
                       "such as 24x24x48"
                     : "give the numbers along x and y, or x, y and z, each from 1 on, with an x "
                       "between them, such as 60x40 or 24x24x48");
}

CLI::Option* add_grid(CLI::App& app, std::string& text, std::string const& help) {
  return app
      .add_option_function<std::vector<std::string>>(
          "--grid",
          [&text](std::vector<std::string> const& words) { text = CLI::detail::join(words, " "); },
          help)
      ->expected(1, 64)
      ->trigger_on_parse();  // the last one counts
}

}  // namespace meshpost::apps
