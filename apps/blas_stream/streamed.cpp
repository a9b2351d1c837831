#include "streamed.hpp"

#include <algorithm>
#include <chrono>

#include "meshpost/device/backend.hpp"

namespace blas_stream {

using namespace meshpost;

namespace {

// The levels that R and Q go through: host memory; pinned memory, if host memory is pageable; the
// device.
std::vector<Level> levels_of(std::shared_ptr<Device> const& device, bool pageable) {
  bool const gpu = device->kind() != "cpu";
  std::vector<Level> levels = {{device, pageable ? MemoryKind::pageable : MemoryKind::pinned}};
  if (pageable && gpu) levels.push_back({device, MemoryKind::pinned});
  levels.push_back({device, MemoryKind::device});
  return levels;
}

}  // namespace

u64 bytes_a_column(StreamOptions const& options, bool gpus) {
  u64 const levels = options.pageable && gpus ? 2 : 1;  // each with an in- and an out-buffer
  return 2 * levels * options.depth * 2 * options.size.m * sizeof(double);
}

std::vector<u64> edge_columns(StreamOptions const& options, Streamed const& streamed) {
  std::vector<u64> columns;
  u64 const n = options.size.n;
  for (auto const& share : streamed.shares())
    for (u64 place : {u64{0}, options.chunk - 1, options.chunk, share.count / 2, share.count - 1})
      if (share.count > 0) columns.push_back(share.first + std::min(place, share.count - 1));
  for (u64 i = 0; i < 16; ++i) columns.push_back(n * i / 16);
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  return columns;
}

Streamed::Streamed(std::vector<std::shared_ptr<Device>> const& devices,
                   StreamOptions const& options, Factors const& factors)
    : options_(options), shares_(devices.size()) {
  auto const [m, n] = options.size;
  auto const memory = options.pageable ? MemoryKind::pageable : MemoryKind::pinned;
  Bytes const whole{m * n * sizeof(double)};
  r_ = devices[0]->allocate(whole, memory);
  q_ = devices[0]->allocate(whole, memory);
  for (u64 i = 0; i < shares_.size(); ++i) {
    shares_[i].first = n * i / shares_.size();
    shares_[i].count = n * (i + 1) / shares_.size() - shares_[i].first;
  }
  group_ = std::make_unique<DeviceGroup>(devices,
                                         [&](Member const& member) { prepare(member, factors); });
}

void Streamed::prepare(Member const& member, Factors const& factors) {
  auto& share = shares_[member.index];
  u64 const m = options_.size.m;
  // The thread that will use them fills them, so that pages lie near it.
  for (u64 column = share.first; column < share.first + share.count; ++column) {
    first_column(r_.as<double>() + column * m, m, column, 0, options_.seed);
    first_column(q_.as<double>() + column * m, m, column, 1, options_.seed);
  }
  Bytes const size{m * m * sizeof(double)};
  share.l = member.device->allocate(size, MemoryKind::device);
  share.k = member.device->allocate(size, MemoryKind::device);
  member.device->write(share.l.data(), factors.l.data(), size);
  member.device->write(share.k.data(), factors.k.data(), size);

  PipelineOptions wanted;
  wanted.levels = levels_of(member.device, options_.pageable);
  wanted.items = share.count;
  wanted.chunk = options_.chunk;
  wanted.item = Bytes{2 * m * sizeof(double)};
  wanted.depth = options_.depth;
  // A chunk's buffer holds its columns of R, then those of Q.
  wanted.segments = [this, &share, m, member](ChunkMove const& move) {
    u64 const place = (share.first + move.first) * m, count = move.count * m;
    Bytes const half{count * sizeof(double)};
    bool const home = move.target == nullptr;
    if (home && member.index == 0 && progress_) progress_(move.first + move.count);
    auto const piece = [&](double* yours, u64 offset) {
      auto* const target = home ? yours + place : static_cast<double*>(move.target) + offset;
      auto const* const source =
          home ? static_cast<double const*>(move.source) + offset : yours + place;
      return Segment{target, source, half};
    };
    return std::vector<Segment>{piece(r_.as<double>(), 0), piece(q_.as<double>(), count)};
  };
  wanted.compute.push_back(
      {static_cast<u32>(wanted.levels.size()) - 1,
       [this, member](ChunkWork const& work, Stream& stream) { compute(member, work, stream); }});
  share.pipeline = std::make_unique<Pipeline>(std::move(wanted));
}

void Streamed::compute(Member const& member, ChunkWork const& work, Stream& stream) {
  auto& share = shares_[member.index];
  if (!share.blas) {
    u32 const cores = member.device->info().processors;  // all CPU devices share them
    share.blas.emplace(member.device, stream, std::max(1u, cores / member.count));
  }
  u64 const m = options_.size.m;
  auto* const in = static_cast<double*>(work.in);
  auto* const out = static_cast<double*>(work.out);
  put_step(*share.blas, m, work.count, share.l.as<double>(), share.k.as<double>(), in,
           in + m * work.count, out, out + m * work.count);
}

double Streamed::iterate(PipelineRun const& how, Progress const& progress) {
  progress_ = progress;
  auto const begin = std::chrono::steady_clock::now();
  group_->step_all([&](Member const& member) {
    auto& share = shares_[member.index];
    share.result = share.pipeline->run(how);
  });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

u64 Streamed::buffer_bytes() const { return shares_[0].pipeline->buffer_bytes(); }
u64 Streamed::resident_bytes() const { return shares_[0].l.size() + shares_[0].k.size(); }

}  // namespace blas_stream
