#include "executor.hpp"

#include <algorithm>
#include <chrono>

#include "common/gather.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/copy/copy.hpp"
#include "without_peer.hpp"

namespace meshpost::gemm {

namespace {

// Operand of a step, in a block of any process.
struct BlockPart {
  Distributed const* matrix;
  u32 owner;
  u64 offset;  // bytes
  u64 stride;  // numbers

  blas::ConstMatrix here() const {
    return {static_cast<char const*>(matrix->block(owner)) + offset, stride};
  }
};

}  // namespace

// State that a device needs to carry out its part.
struct Executor::DeviceQueues {
  DeviceQueues(std::shared_ptr<Device> const& device, u32 threads)
      : products(device->make_stream()),
        fetch_a(device->make_stream()),
        fetch_b(device->make_stream()),
        blas(device, *products, threads) {}

  std::unique_ptr<Stream> products, fetch_a, fetch_b;
  blas::Blas blas;
  u64 a_width = 0, b_width = 0;  // columns and rows of k that a buffer holds
  std::vector<Allocation> a, b;  // buffers
  std::vector<std::shared_ptr<Event>> step_ended;
  std::vector<Copy> copies;
  u64 fetched = 0;  // bytes, in this run
};

Executor::Executor(Plan plan, Devices devices, Distributed& a, Distributed const& b, Distributed& c,
                   u32 threads, bool peer)
    : plan_(std::move(plan)), devices_(std::move(devices)), a_(&a), b_(b), c_(&c), peer_(peer) {
  u64 const size = blas::size_of(c.type());
  for (u32 d = 0; d < plan_.devices.size(); ++d) {
    auto const& own = plan_.devices[d];
    queues_.emplace_back();
    if (!c_->spread().has(d)) continue;
    auto& queues = *(queues_.back() = std::make_unique<DeviceQueues>(devices_[d], threads));
    auto const allocate = [&](std::vector<Allocation>& buffers, u64 fetches, u64 numbers) {
      for (u32 s = 0; s < std::min<u64>(plan_.options.slots, fetches); ++s) {
        buffers.push_back(devices_[d]->allocate(Bytes{numbers * size}, MemoryKind::device));
        devices_[d]->fill(buffers.back().data(), 0xff, buffers.back().size());
      }
    };
    queues.a_width = slot_width(own.a);
    queues.b_width = slot_width(own.b);
    allocate(queues.a, own.a.size(), queues.a_width * c_->rows_of(d).count);
    allocate(queues.b, own.b.size(), queues.b_width * c_->columns_of(d).count);
  }
}

Executor::~Executor() {
  try {
    synchronize();  // work enqueued before an error still uses the buffers
  } catch (std::exception const&) {
  }
}

Bytes Executor::buffers() const {
  u64 sum = 0;
  for (u32 d = 0; d < plan_.devices.size(); ++d) sum += buffer_numbers(plan_, d);
  return Bytes{sum * blas::size_of(c_->type())};
}

Bytes Executor::fetched(u32 device) const {
  return Bytes{queues_[device] ? queues_[device]->fetched : 0};
}

void Executor::reuse_result() {
  auto const& [m, n, k, grid] = plan_.problem;
  if (n != k)
    throw Error(Kind::bad_argument, "use the result as the next A",
                "n is " + std::to_string(n) + " and k is " + std::to_string(k),
                "choose a size with n = k");
  std::swap(a_, c_);
}

void Executor::synchronize() {
  for (auto const& queues : queues_) {
    if (!queues) continue;
    for (auto* stream : {queues->products.get(), queues->fetch_a.get(), queues->fetch_b.get()})
      stream->synchronize();
  }
}

double Executor::run(Work work) {
  auto* const job = c_->spread().job;
  u64 steps = 0;
  for (u32 d = 0; d < queues_.size(); ++d) {
    if (!queues_[d]) continue;
    queues_[d]->step_ended.clear();
    queues_[d]->fetched = 0;
    steps = std::max<u64>(steps, plan_.devices[d].steps.size());
  }
  synchronize();
  if (job) meet(*job);
  auto const begin = std::chrono::steady_clock::now();
  // One step of each device in turn: no device waits until the host has enqueued all steps of
  // another.
  for (u32 step = 0; step < steps; ++step)
    for (u32 d = 0; d < queues_.size(); ++d)
      if (queues_[d] && step < plan_.devices[d].steps.size()) enqueue_step(d, step, work);
  synchronize();
  auto const end = std::chrono::steady_clock::now();
  for (auto const& queues : queues_) {
    if (!queues) continue;
    for (auto& copy : queues->copies) copy.wait();  // all are done: throws if one failed
    queues->copies.clear();
  }
  auto const nanoseconds = [](auto moment) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(moment.time_since_epoch()).count();
  };
  auto const mine = std::to_string(nanoseconds(begin)) + " " + std::to_string(nanoseconds(end));
  times_.clear();
  double seconds = 0;  // until the last is done
  for (auto const& text : job ? gather(*job, mine) : std::vector{mine}) {
    std::size_t used = 0;
    i64 const began = std::stoll(text, &used), ended = std::stoll(text.substr(used));
    times_.push_back({static_cast<double>(began) * 1e-9, static_cast<double>(ended) * 1e-9});
    seconds = std::max(seconds, static_cast<double>(ended - began) * 1e-9);
  }
  return seconds;
}

// Every wait is for an event of the same device that is recorded already. A fetch waits for an
// earlier step (Fetch::after), a product for its own fetches. Fetched blocks don't change. So
// devices can't block or disturb each other, in any order of progress.
void Executor::enqueue_step(u32 device, u32 step, Work work) {
  auto& queues = *queues_[device];
  auto const& plan = plan_.devices[device];
  auto const& [k, a, b] = plan.steps[step];
  u64 const size = blas::size_of(c_->type());
  u64 const rows = c_->rows_of(device).count, columns = c_->columns_of(device).count;
  // Position in the owner's block where the operand begins. Blocks of A have `rows` rows, like the
  // device's own. Blocks of B have as many rows as their part of k.
  auto const part_of_a = [&](u32 owner) {
    return BlockPart{a_, owner, (k.first - a_->columns_of(owner).first) * rows * size, rows};
  };
  auto const part_of_b = [&](u32 owner) {
    auto const owned = b_.rows_of(owner);
    return BlockPart{&b_, owner, (k.first - owned.first) * size, owned.count};
  };
  auto const fetch = [&](Stream& stream, Fetch const& from, BlockPart const& part,
                         PitchedCopy piece) {
    if (work == Work::products) return;
    queues.fetched += piece.width * piece.rows;
    if (from.after != 0) stream.wait(queues.step_ended[from.after - 1]);
    BlockShape const shape{Bytes{piece.width}, piece.rows};
    Pitch const target{Bytes{piece.target_row}, {}}, source{Bytes{piece.source_row}, {}};
    if (!part.matrix->spread().has(part.owner)) {
      Bytes const reach{(piece.rows - 1) * piece.source_row + piece.width};
      queues.copies.push_back(copy_async(piece.target, target,
                                         part.matrix->far(part.owner, part.offset, reach), source,
                                         shape, {{&stream}}));
    } else if (peer_) {
      queues.copies.push_back(
          copy_async(piece.target, target, part.here().data, source, shape, {{&stream}}));
    } else {
      piece.source = part.here().data;
      copy_without_peer(stream, *devices_[device], *devices_[from.owner], piece);
    }
    if (work == Work::all) queues.products->wait(stream.record());
  };
  blas::ConstMatrix a_now, b_now;
  if (a == Step::in_place) {
    a_now = part_of_a(device).here();
  } else {
    auto const& from = plan.a[a];
    a_now = {queues.a[from.slot].data(), rows};
    PitchedCopy piece;
    piece.target = queues.a[from.slot].data();
    piece.width = rows * k.count * size;
    fetch(*queues.fetch_a, from, part_of_a(from.owner), piece);
  }
  if (b == Step::in_place) {
    b_now = part_of_b(device).here();
  } else {
    auto const& from = plan.b[b];
    b_now = {queues.b[from.slot].data(), queues.b_width};
    auto const source = part_of_b(from.owner);
    PitchedCopy piece;
    piece.target = queues.b[from.slot].data();
    piece.target_row = queues.b_width * size;
    piece.source_row = source.stride * size;
    piece.width = k.count * size;
    piece.rows = columns;
    fetch(*queues.fetch_b, from, source, piece);
  }
  if (work != Work::fetches)
    queues.blas.gemm(c_->type(), {rows, columns, k.count}, 1, a_now, b_now, step == 0 ? 0 : 1,
                     {c_->block(device), rows});
  queues.step_ended.push_back(queues.products->record());
}

}  // namespace meshpost::gemm
