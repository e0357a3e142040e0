/* What a device offers to tensorplug: version 1.

   A device fills in the functions below, which handle memory and commands, and one table of kernels.
   src/device.c and src/kernels.c do so for a pretend device whose queue is a thread. Replace them, one
   function after the other. Nothing here is of Python, and every language that can export C functions
   can take the place of C.

   The rules:

   - Handles (tp_device, tp_queue, tp_buffer, tp_program, tp_event) are opaque. What they point to is
     yours.
   - Each function may be called from several threads at once.
   - A function that returns tp_status returns TP_OK, or says in tp_message() what is wrong.
   - Commands run later. A command that fails has no result: its outputs are poisoned, and so are the
     outputs of all commands that read them. The error comes late, with the first call that waits:
     tp_buffer_read of a poisoned buffer, or tp_synchronize, which tells each once. The queue goes on.
   - Memory may be freed while commands that use it wait: a command keeps its buffers.
   - A process that forks leaves its device to the parent: in the child, functions whose names end with
     _free do nothing, and no other function is called.
*/
#ifndef TENSORPLUG_H
#define TENSORPLUG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TP_VERSION = 1 }; /* changes whenever a device that was built before would no longer work */

typedef enum tp_status {
    TP_OK = 0,
    TP_UNAVAILABLE,   /* there is no such device, or it cannot be opened */
    TP_OUT_OF_MEMORY, /* there is no room on the device */
    TP_OUT_OF_RANGE,  /* an index in the data is outside of its axis */
    TP_UNSUPPORTED,   /* tp_program_new: tensorplug composes this call of other kernels */
    TP_FAULT,         /* a command failed; the device goes on */
    TP_LOST,          /* the device and all its data are gone */
    TP_TIMEOUT        /* the same: it did not answer in time, and is given up */
} tp_status;

/* Tensors ----------------------------------------------------------------------------------- */

/* The next three types are laid out as DLPack's DLDataType, DLDevice and DLTensor are. */

enum { TP_INT = 0, TP_UINT = 1, TP_FLOAT = 2, TP_BFLOAT = 4, TP_COMPLEX = 5, TP_BOOL = 6 };

typedef struct tp_dtype {
    uint8_t code;   /* TP_INT, TP_FLOAT, ... A bool is a byte of value 0 or 1. */
    uint8_t bits;   /* of one element */
    uint16_t lanes; /* 1 */
} tp_dtype;

typedef struct tp_place {
    int32_t type;
    int32_t number;
} tp_place;

/* Data begin at 64-byte boundaries and are dense, in row-major order. Strides count elements. An
   elementwise kernel reads all its inputs in the shape of its output: the stride of an axis along which
   an input is broadcast is 0. */
typedef struct tp_tensor {
    void *data; /* NULL in tp_program_new, when there are no data yet */
    tp_place place;
    int32_t ndim;
    tp_dtype dtype;
    const int64_t *shape;
    const int64_t *strides;
    uint64_t byte_offset; /* 0 */
} tp_tensor;

/* Kernels ----------------------------------------------------------------------------------- */

/* A number of an attribute, as an integer (rounded towards 0) and as a float. */
typedef struct tp_number {
    int64_t i;
    double f;
} tp_number;

typedef struct tp_call {
    int32_t n_inputs;
    int32_t n_outputs;
    int32_t n_attributes;
    const tp_tensor *inputs;
    const tp_tensor *outputs;
    const tp_number *attributes; /* all numbers of the attributes that tp_kernel names, in order */
} tp_call;

/* Computes the outputs from the inputs: writes every element, and changes no input. Shapes and dtypes
   are right: tensorplug has checked them. */
typedef tp_status (*tp_function)(const tp_call *call);

typedef struct tp_kernel {
    const char *name;       /* "Add": a name on tensorplug's page of specs */
    int32_t n_inputs;       /* as many as the spec has; -1: any number of them, as Concat has */
    tp_function run;
    const char *attributes; /* those that it needs, by name, with spaces between: "axis batch_dims" */
} tp_kernel;

/* All kernels; a NULL as name ends the table. With the kernels that src/kernels.c has, every function
   of tensorplug runs. Add others, such as Softmax, where one of yours is faster than what tensorplug
   composes. Identity and Reshape need no kernel: they share memory. */
const tp_kernel *tp_kernels(void);

/* The dtypes of tensors on this device: at least bool, int32 and float32. One of 0 bits ends them. */
const tp_dtype *tp_dtypes(void);

/* The device --------------------------------------------------------------------------------- */

typedef struct tp_device tp_device;   /* one device, opened */
typedef struct tp_queue tp_queue;     /* runs commands, one after the other */
typedef struct tp_buffer tp_buffer;   /* a piece of the device's memory */
typedef struct tp_program tp_program; /* a kernel made ready for types and attributes */
typedef struct tp_event tp_event;     /* a place in a queue */

/* Return the TP_VERSION that the library was built with. */
int32_t tp_version(void);

/* Return what was wrong in the last call of this thread that did not return TP_OK. */
const char *tp_message(void);

/* Return the kernel whose command caused that, "" if none did. */
const char *tp_failed_kernel(void);

/* Open a device, 0 being the first. */
tp_status tp_device_open(int32_t number, tp_device **device);

/* Let go of the device. Queues are freed before; buffers, programs and events may be freed later. */
void tp_device_free(tp_device *device);

/* Return a description of the hardware. */
const char *tp_device_name(const tp_device *device);

/* Return TP_OK, or TP_LOST once the device is lost. Does not wait. */
tp_status tp_device_state(tp_device *device);

/* Set how many bytes all buffers may have together. What is allocated stays. */
void tp_device_limit(tp_device *device, uint64_t bytes);

/* Return how many bytes are in use, and the limit. Does not wait. */
void tp_device_memory(tp_device *device, uint64_t *used, uint64_t *limit);

/* For tests: let the next command of a queue fail with this status. With TP_TIMEOUT it never ends, until
   the queue is freed. Return TP_UNSUPPORTED where the device cannot be made to fail so. */
tp_status tp_device_inject(tp_device *device, tp_status status);

/* Allocate a buffer, and copy `bytes` bytes from `host`, which the caller may change when this returns.
   Where there is no room, wait for the commands that were given, which may free some. */
tp_status tp_buffer_new(tp_device *device, uint64_t bytes, const void *host, tp_buffer **buffer);

/* Wait until the buffer has its contents; copy them to `host`, or return why there are none. */
tp_status tp_buffer_read(tp_buffer *buffer, void *host, uint64_t bytes);

void tp_buffer_free(tp_buffer *buffer);

/* Make a kernel ready for calls of one kind: the place for a compiler. `call` is valid until this
   returns. */
tp_status tp_program_new(tp_device *device, const tp_kernel *kernel, const tp_call *call,
                         tp_program **program);

void tp_program_free(tp_program *program);

tp_status tp_queue_new(tp_device *device, tp_queue **queue);

/* Wait for all commands, then free the queue. */
void tp_queue_free(tp_queue *queue);

/* Allocate the outputs and give the command to the queue. Does not wait for it. */
tp_status tp_launch(tp_queue *queue, tp_program *program, tp_buffer *const *inputs,
                    tp_buffer **outputs);

/* Wait for all commands given before; return the first error that no call has returned yet. */
tp_status tp_synchronize(tp_queue *queue);

/* Mark this place in the queue. */
tp_status tp_event_new(tp_queue *queue, tp_event **event);

/* Wait until the queue has come to the event; return for how long it has computed by then, in
   nanoseconds of the device's clock. */
uint64_t tp_event_wait(tp_event *event);

void tp_event_free(tp_event *event);

#ifdef __cplusplus
}
#endif

#endif
