// The CUDA runtime as libfabric 2.1 loads it, but for one call. When libfabric has copied to or
// from a GPU, it waits for all that the GPU does, and so for kernels that wait for the copy; here
// it waits for the copy. With it libfabric's shm can stand in for a network card that reaches GPUs'
// memory:
//
//   cc -shared -fPIC -o shim/libcudart.so cudart.c -I$CUDA/include -L$CUDA/lib64 -lcudart
//   LD_LIBRARY_PATH=shim:<libfabric with CUDA>:$CUDA/lib64 MESHPOST_TEST_HMEM=1 \
//     MESHPOST_TEST_DEVICES=cuda build/cuda/tests/test_jobs --gtest_filter=JobReached.*
//
// libfabric is configured for it by --with-cuda=$CUDA --enable-cuda-dlopen.
#include <cuda_runtime_api.h>

cudaError_t cudaDeviceSynchronize(void) { return cudaStreamSynchronize(cudaStreamLegacy); }
