// A LibMP program: each process sends to the next one, in the order of a stream, when that one has
// said that it is ready. Without a launcher, the one process sends to itself.
#define MESHPOST_MP_WITHOUT_MPI  // with MPI: mp_init(MPI_COMM_WORLD, ...)
#include <mp.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int count = 1000, steps = 10;

// mp.h has written the reason to stderr.
void check(int status) {
  if (status != 0) std::exit(1);
}

int main() {
  int process = 0, processes = 1;
  std::vector<int> peers(2);
  // [begin]
  check(mp_init_job(nullptr, 0, MP_INIT_DEFAULT, 0, &process, &processes));  // who is there?
  mp_finalize();
  int const next = (process + 1) % processes, previous = (process + processes - 1) % processes;
  peers = {next, previous};
  check(mp_init_job(peers.data(), 2, MP_INIT_DEFAULT, 0, nullptr, nullptr));

  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  void *out = nullptr, *in = nullptr;
  check(cudaMalloc(&out, count));
  check(cudaMalloc(&in, count));
  mp_reg_t out_reg, in_reg, ready_reg, announced_reg;
  check(mp_register(out, count, &out_reg));
  check(mp_register(in, count, &in_reg));
  // [/begin]
  // [ready]
  // The next process puts the number of a step here when it has posted the receive of that step.
  uint32_t ready = 0, announced = 0;
  mp_window_t window;
  check(mp_register(&ready, sizeof ready, &ready_reg));
  check(mp_register(&announced, sizeof announced, &announced_reg));
  check(mp_window_create(&ready, sizeof ready, &window));

  std::vector<char> received(count);
  bool right = true;
  for (int step = 1; step <= steps; ++step) {
    mp_request_t receive, announce, send;
    check(mp_irecv(in, count, previous, &in_reg, &receive));
    announced = static_cast<uint32_t>(step);
    check(mp_iput_on_stream(&announced, sizeof announced, &announced_reg, previous, 0, &window,
                            &announce, MP_PUT_INLINE | MP_PUT_NOWAIT, stream));
    check(cudaMemsetAsync(out, 10 * step + process, count, stream));  // the program's kernels
    check(mp_wait32_on_stream(&ready, static_cast<uint32_t>(step), MP_WAIT_GEQ, stream));
    check(mp_isend_on_stream(out, count, next, &out_reg, &send, stream));
    check(mp_wait_on_stream(&receive, stream));
    check(cudaMemcpyAsync(received.data(), in, count, cudaMemcpyDefault, stream));
    check(mp_wait_on_stream(&send, stream));  // before `out` changes
    // Up to here the host has not waited for anything.
    check(cudaStreamSynchronize(stream));
    check(mp_progress_all(0, nullptr));  // has a wait of the stream failed?
    for (char const value : received) right &= value == static_cast<char>(10 * step + previous);
  }
  // [/ready]
  mp_finalize();  // waits for all: nobody puts into `ready` any more
  check(cudaStreamDestroy(stream));
  check(cudaFree(out));
  check(cudaFree(in));
  std::printf("process %d of %d: %d messages%s\n", process, processes, steps,
              right ? "" : ", not all of them right");
  return right ? 0 : 1;
}
