#pragma once
#include <meshpost/base/strided.hpp>

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace meshpost::apps {

/// Reads the extents of a grid, as all applications write them: "24x24x48", and "60x40" where
/// `fewest` is 2 (z is then 1). \throws Error(bad_argument) naming --grid, the text and the form
Extents3 read_grid(std::string const& text, u32 fewest);

/// Adds --grid. Words behind it are taken as a part of the text, so that "24 24 48" is refused with
/// the form that is right.
CLI::Option* add_grid(CLI::App& app, std::string& text, std::string const& help);

}  // namespace meshpost::apps
