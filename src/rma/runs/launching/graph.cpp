#include "rma/runs/launching/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace meshpost {
namespace detail {

std::vector<std::max_align_t> copy_of_kernel(void const* kernel, std::size_t bytes) {
  std::vector<std::max_align_t> copy((bytes + sizeof(std::max_align_t) - 1) /
                                     sizeof(std::max_align_t));
  std::memcpy(copy.data(), kernel, bytes);
  return copy;
}

bool GraphOnDevices::fits(u32 other_world, std::vector<FreedWindows> const& now) const {
  auto const same = [](FreedWindows const& one, FreedWindows const& other) {
    return one.first == other.first && one.span == other.span && one.count == other.count &&
           one.ranges == other.ranges;
  };
  return world == other_world && std::ranges::equal(freed, now, same);
}

namespace {

char const* of_the_whole(Launch const& launch) {
  if (!launch.streams.empty()) return "streams";
  if (launch.deadline) return "a deadline";
  if (!launch.trace.empty()) return "a timeline's file";
  if (launch.with_host) return "with_host";
  return nullptr;
}

}  // namespace
}  // namespace detail

Graph::Graph() : record_(std::make_shared<detail::GraphRecord>()) {}

void Graph::add(KernelImage const& image, void const* kernel, std::size_t bytes,
                Launch const& launch) {
  auto const operation = fmt::format("add {} to a graph", image.name);
  if (auto const* const what = detail::of_the_whole(launch))
    throw Error(Kind::bad_argument, operation,
                fmt::format("its Launch has {}, which all runs of a graph share", what),
                "give it to World::launch(graph, launch)");
  detail::GraphStep step{image, detail::copy_of_kernel(kernel, bytes), launch};
  std::scoped_lock const lock(record_->mutex);
  if (record_->launched)
    throw Error(Kind::misuse, operation, "the graph was launched already",
                "make another one, or add all runs before the first launch");
  record_->steps.push_back(std::move(step));
}

std::size_t Graph::size() const {
  std::scoped_lock const lock(record_->mutex);
  return record_->steps.size();
}

}  // namespace meshpost
