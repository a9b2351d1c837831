#pragma once
/* The functions of CUDA that LibMP programs use on the host, for programs that run on CPU devices;
 * for C and C++. Memory of "the GPU" is the host's. A stream is a thread that works off its
 * operations in order. In the include path of the CMake target meshpost::mp if meshpost was built
 * without CUDA. */
#include <limits.h> /* as CUDA's header */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNotReady = 600,
  cudaErrorUnknown = 999
} cudaError_t;
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
typedef struct CUstream_st* cudaStream_t; /**< null: one for the whole process */
typedef struct CUevent_st* cudaEvent_t;
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
struct cudaDeviceProp {
  char name[256];
  int multiProcessorCount, major, minor;
};

/* The library's part. Each returns a cudaError_t. */
void* meshpost_on_cpu_allocate(size_t size); /**< null for 0 */
void meshpost_on_cpu_release(void* memory);
int meshpost_on_cpu_stream_create(cudaStream_t* stream, unsigned flags);
int meshpost_on_cpu_stream_destroy(cudaStream_t stream);
int meshpost_on_cpu_stream_synchronize(cudaStream_t stream);
int meshpost_on_cpu_stream_query(cudaStream_t stream);
int meshpost_on_cpu_synchronize(void);      /**< all streams */
int meshpost_on_cpu_synchronize_null(void); /**< all but non-blocking ones */
int meshpost_on_cpu_copy(void* target, const void* source, size_t size, cudaStream_t stream);
int meshpost_on_cpu_fill(void* target, int value, size_t size, cudaStream_t stream);
int meshpost_on_cpu_call(cudaStream_t stream, void (*work)(void*), void* argument);
int meshpost_on_cpu_event_create(cudaEvent_t* event);
int meshpost_on_cpu_event_destroy(cudaEvent_t event);
int meshpost_on_cpu_event_record(cudaEvent_t event, cudaStream_t stream);
int meshpost_on_cpu_event_query(cudaEvent_t event);
int meshpost_on_cpu_event_synchronize(cudaEvent_t event);
int meshpost_on_cpu_event_elapsed(float* milliseconds, cudaEvent_t from, cudaEvent_t to);
int meshpost_on_cpu_wait_event(cudaStream_t stream, cudaEvent_t event);

static inline cudaError_t cudaMalloc(void** data, size_t size) {
  if (!data) return cudaErrorInvalidValue;
  *data = meshpost_on_cpu_allocate(size);
  return *data || size == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaMallocHost(void** data, size_t size) {
  return cudaMalloc(data, size);
}
static inline cudaError_t cudaHostAlloc(void** data, size_t size, unsigned flags) {
  (void)flags;
  return cudaMalloc(data, size);
}
static inline cudaError_t cudaFree(void* data) {
  meshpost_on_cpu_synchronize(); /* as CUDA's: work that uses the memory ends first */
  meshpost_on_cpu_release(data);
  return cudaSuccess;
}
static inline cudaError_t cudaFreeHost(void* data) { return cudaFree(data); }
static inline cudaError_t cudaMemcpy(void* target, const void* source, size_t size,
                                     enum cudaMemcpyKind kind) {
  (void)kind;
  meshpost_on_cpu_synchronize_null(); /* as CUDA's */
  if (size != 0) memmove(target, source, size);
  return cudaSuccess;
}
static inline cudaError_t cudaMemset(void* target, int value, size_t size) {
  meshpost_on_cpu_synchronize_null();
  if (size != 0) memset(target, value, size);
  return cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t size,
                                          enum cudaMemcpyKind kind, cudaStream_t stream) {
  (void)kind;
  return (cudaError_t)meshpost_on_cpu_copy(target, source, size, stream);
}
static inline cudaError_t cudaMemsetAsync(void* target, int value, size_t size,
                                          cudaStream_t stream) {
  return (cudaError_t)meshpost_on_cpu_fill(target, value, size, stream);
}
static inline cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*work)(void*),
                                             void* argument) {
  return (cudaError_t)meshpost_on_cpu_call(stream, work, argument);
}
static inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return (cudaError_t)meshpost_on_cpu_stream_create(stream, cudaStreamDefault);
}
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return (cudaError_t)meshpost_on_cpu_stream_create(stream, flags);
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return (cudaError_t)meshpost_on_cpu_stream_destroy(stream);
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return (cudaError_t)meshpost_on_cpu_stream_synchronize(stream);
}
static inline cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return (cudaError_t)meshpost_on_cpu_stream_query(stream);
}
static inline cudaError_t cudaDeviceSynchronize(void) {
  return (cudaError_t)meshpost_on_cpu_synchronize();
}
static inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return (cudaError_t)meshpost_on_cpu_event_create(event);
}
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  (void)flags;
  return cudaEventCreate(event);
}
static inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return (cudaError_t)meshpost_on_cpu_event_destroy(event);
}
static inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return (cudaError_t)meshpost_on_cpu_event_record(event, stream);
}
static inline cudaError_t cudaEventQuery(cudaEvent_t event) {
  return (cudaError_t)meshpost_on_cpu_event_query(event);
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return (cudaError_t)meshpost_on_cpu_event_synchronize(event);
}
static inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from,
                                               cudaEvent_t to) {
  return (cudaError_t)meshpost_on_cpu_event_elapsed(milliseconds, from, to);
}
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                              unsigned flags) {
  (void)flags;
  return (cudaError_t)meshpost_on_cpu_wait_event(stream, event);
}
static inline cudaError_t cudaGetDeviceCount(int* count) {
  if (!count) return cudaErrorInvalidValue;
  *count = 1;
  return cudaSuccess;
}
static inline cudaError_t cudaGetDevice(int* device) {
  if (!device) return cudaErrorInvalidValue;
  *device = 0;
  return cudaSuccess;
}
static inline cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
static inline cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* properties, int device) {
  if (!properties || device != 0) return cudaErrorInvalidValue;
  memset(properties, 0, sizeof *properties);
  strcpy(properties->name, "CPU device");
  properties->multiProcessorCount = 1;
  return cudaSuccess;
}
static inline cudaError_t cudaGetLastError(void) { return cudaSuccess; }
static inline const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorNotReady: return "not ready";
    default: return "unknown error";
  }
}

#ifdef __cplusplus
}

template <class T>
cudaError_t cudaMalloc(T** data, size_t size) {
  return cudaMalloc(reinterpret_cast<void**>(data), size);
}
template <class T>
cudaError_t cudaMallocHost(T** data, size_t size) {
  return cudaMalloc(reinterpret_cast<void**>(data), size);
}
template <class T>
cudaError_t cudaHostAlloc(T** data, size_t size, unsigned flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(data), size, flags);
}
#endif
