// Figure halo: measures, prints and writes the loop over repetitions, sizes and numbers of kernels.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>

#include "common/figures.hpp"
#include "halo.hpp"
#include "report.hpp"

namespace pingpong {

using namespace meshpost;

namespace {

// A row of measurements of one size of blocks.
struct Setting {
  u32 steps;
  Tasks tasks;
};

class HaloFigure {
 public:
  explicit HaloFigure(Options const& options) : options_(options), cubes_(options.cubes) {
    for (auto const& text : options.tasks) tasks_.push_back(parse_tasks(text));
    for (auto const& mode : all_modes)
      if (options.has(mode)) modes_.push_back(mode);
    std::optional<Blocks> given;
    if (!options.blocks.empty()) given = parse_blocks(options.blocks);
    WorldOptions wanted;
    wanted.devices = devices_of(options);
    bool const gpu = open_devices(wanted.devices).front()->kind() == "cuda";
    wanted.ranks = options.ranks != 0 ? options.ranks : gpu ? 0 : 1;
    if (cubes_.empty())
      cubes_ = gpu ? std::vector<u32>{16, 32, 64, 128} : std::vector<u32>{8, 16, 32};
    wanted.collectives = Bytes{1u << 20};  // only barriers are used
    world_ = std::make_shared<World>(wanted);
    use_devices_for_copies(physical_devices(world_->devices()));
    blocks_ = given ? *given : near_cube(world_->device_count());
  }

  int run() {
    Halo{world_, blocks_, 2};  // refuses what it can't do before something is printed
    facts_ = facts_of(options_, *world_);
    facts_["blocks"] = {blocks_.x, blocks_.y, blocks_.z};
    facts_["coefficient"] = coefficient;
    std::printf("blocks      %s, one a device\n", blocks_.text().c_str());
    u32 const more = std::min<u32>(1, static_cast<u32>(cubes_.size()) - 1);
    for (u32 i = 0; i < cubes_.size(); ++i) measure_cube(cubes_[i], i == more);
    std::printf("\nfields      %s\n", wrong_           ? "WRONG"
                                      : options_.check ? "equal to the bit in all modes"
                                                       : "not checked");
    if (!options_.json.empty()) meshpost::apps::write_figures(options_.json, facts_);
    return wrong_ == 0 ? 0 : 1;
  }

 private:
  void measure_cube(u32 n, bool of_tasks) {
    Halo halo(world_, blocks_, n);
    std::mt19937_64 random(options_.seed + n);
    std::vector<double> field(halo.points());
    for (auto& value : field) value = std::uniform_real_distribution<>(-1, 1)(random);
    auto const all = of_tasks ? tasks_ : std::vector<Tasks>{tasks_.front()};
    for (auto const& tasks : all)
      if (options_.check) check(halo, n, tasks, field);
    std::printf("\n%u^3 points a device: us a step (CPU time of the process in us)\n%18s", n, "");
    for (auto const mode : modes_) std::printf(" %21s", name(mode).c_str());
    std::printf("\n");
    halo.write(field);  // of finite numbers
    for (u32 const steps : options_.steps) measure_row(halo, n, {steps, all.front()});
    for (u32 i = 1; i < all.size(); ++i)
      measure_row(halo, n, {*std::ranges::max_element(options_.steps), all[i]});
  }

  void measure_row(Halo& halo, u32 n, Setting const& setting) {
    std::printf("%6s, %4u steps", setting.tasks.text().c_str(), setting.steps);
    for (auto const mode : modes_) {
      auto const times = measure(options_.repetitions, setting.steps,
                                 [&] { return halo.run({mode, setting.steps, setting.tasks}); });
      std::printf(" %10.2f (%8.2f)", times.median * 1e6, times.cpu * 1e6);
      std::fflush(stdout);
      auto result = json_of(times);
      result.update({{"mode", name(mode)},
                     {"cube", n},
                     {"steps", setting.steps},
                     {"tasks", {setting.tasks.x, setting.tasks.y, setting.tasks.z}}});
      facts_["results"].push_back(result);
    }
    std::printf("\n");
  }

  // All modes, and the grid in one piece, from the same field. The number of steps is odd, and
  // enough to use each inbox twice.
  void check(Halo& halo, u32 n, Tasks const& tasks, std::vector<double> const& field) {
    constexpr u32 steps = 5;
    auto const expected = halo_reference(blocks_, n, field, steps);
    bool const kept = !options_.fields.empty() && !facts_.contains("fields");
    if (kept) {
      facts_["fields"] = {{"shape", {blocks_.z * n, blocks_.y * n, blocks_.x * n}},
                          {"steps", steps},
                          {"before", keep("before", field)},
                          {"after", nlohmann::json::object()}};
    }
    for (auto const mode : modes_) {
      halo.write(field);
      halo.run({mode, steps, tasks});
      auto const found = halo.read(steps);
      if (kept) facts_["fields"]["after"][name(mode)] = keep(name(mode), found);
      if (std::memcmp(found.data(), expected.data(), found.size() * sizeof(double)) == 0) continue;
      ++wrong_;
      u64 at = 0;
      while (std::memcmp(&found[at], &expected[at], sizeof(double)) == 0) ++at;
      u64 const x = u64{blocks_.x} * n, y = u64{blocks_.y} * n;
      std::fprintf(stderr,
                   "pingpong: %s, %u^3 points a device, tasks %s: point (%llu, %llu, %llu) is "
                   "%.17g and should be %.17g\n",
                   name(mode).c_str(), n, tasks.text().c_str(), at % x, at / x % y, at / x / y,
                   found[at], expected[at]);
    }
  }

  std::string keep(std::string const& stem, std::vector<double> const& field) {
    std::filesystem::create_directories(options_.fields);
    auto const path = (std::filesystem::path(options_.fields) / (stem + ".f64")).string();
    meshpost::apps::write_file(path, std::as_bytes(std::span(field)));
    return path;
  }

  Options const& options_;
  std::vector<u32> cubes_;
  std::shared_ptr<World> world_;
  Blocks blocks_;
  std::vector<Tasks> tasks_;
  std::vector<Mode> modes_;
  nlohmann::json facts_;
  u32 wrong_ = 0;
};

}  // namespace

int run_halo(Options const& options) { return HaloFigure(options).run(); }

}  // namespace pingpong
