#pragma once
#include <meshpost/fabric/machine.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>

// Simulated machines, and a folder and variables that exist only during the test.

namespace meshpost::test {

inline Machine random_machine(std::mt19937_64& random) {
  auto const below = [&](u64 limit) { return random() % limit; };
  auto const rate = [&] {
    return below(8) == 0 ? 0.0 : std::ldexp(static_cast<double>(random()), int(below(60)) - 50);
  };
  auto const text = [&] {
    static std::string const pieces[] = {"NVIDIA", "\"", "\\", "\n", "é", " x16", "", "\t", "/"};
    std::string all;
    for (u64 i = below(6); i > 0; --i) all += pieces[below(std::size(pieces))];
    return all;
  };
  Machine machine;
  machine.host = text();
  machine.fingerprint = text();
  for (auto const* const kind : {"pageable", "pinned", "cuda", "cpu"})
    for (u32 i = 0; i < 1 + below(3); ++i) {
      PlaceInfo info;
      info.place = {kind, i * 7};
      info.model = text();
      info.numa_node = static_cast<u32>(below(~u32{0}));
      info.bus = text();
      info.size = Bytes{random()};
      info.rate_out = rate();
      info.rate_in = rate();
      machine.places.push_back(info);
    }
  for (u32 from = 0; from < machine.places.size(); ++from)
    for (u32 to = 0; to < machine.places.size(); ++to)
      for (auto const mover : {Mover::host_threads, Mover::copy_engine, Mover::through_host}) {
        if (below(2) == 0) continue;
        Link link;
        link.from = from;
        link.to = to;
        link.mover = mover;
        link.medium = text();
        link.latency = rate();
        link.rate = rate();
        link.rate_both_ways = rate();
        machine.links.push_back(link);
      }
  for (u64 i = below(4); i > 0; --i) {
    HostRates one{Bytes{random()}, {}};
    for (auto& each : one.rates) each = rate();
    machine.host_copies.push_back(one);
  }
  return machine;
}

/// Sets a variable of the environment for a scope.
class Variable {
 public:
  Variable(std::string name, std::string const& value) : name_(std::move(name)) {
    if (char const* const before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() {
    if (before_) setenv(name_.c_str(), before_->c_str(), 1);
    else unsetenv(name_.c_str());
  }
  Variable(Variable const&) = delete;
  Variable& operator=(Variable const&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

/// A new folder, removed with all that is in it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "meshpost-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("can't make " + name);
    path_ = name;
  }
  ~Folder() {
    std::error_code unused;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, unused);
    std::filesystem::remove_all(path_, unused);
  }
  Folder(Folder const&) = delete;
  Folder& operator=(Folder const&) = delete;
  std::filesystem::path const& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace meshpost::test
