/* A pretend device: memory of its own with a limit, and queues that threads run.

   REPLACE the body of each function by calls of your driver. The one lock of the device guards all that
   its handles point to; a kernel runs without it. */
#define _POSIX_C_SOURCE 200809L

#include "device.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ALIGNMENT = 64, LONGEST_MESSAGE = 256 };
static const uint64_t MEMORY = (uint64_t)4 << 30; /* bytes */

/* Why a command has no result. Poisoned buffers share it. */
typedef struct fault {
    int references;
    tp_status status;
    bool told; /* a call has returned it */
    struct fault *next;
    const char *kernel;
    char message[LONGEST_MESSAGE];
} fault;

struct tp_device {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a command has ended, or one was given */
    int references;         /* by the program and by all handles */
    pid_t process;          /* that opened it */
    uint64_t used, limit;   /* bytes */
    int waiting;            /* commands that have not ended */
    bool lost;
    tp_status injected; /* what becomes of the next command that is given */
    fault *untold; /* what tp_synchronize returns next */
};

struct tp_buffer {
    tp_device *device;
    int references; /* by the handle and by commands */
    void *data;
    uint64_t bytes, reserved;
    bool ready;
    fault *poison; /* NULL: it has contents */
};

struct tp_program {
    tp_device *device;
    int references;
    const tp_kernel *kernel;
    tp_call call; /* its arrays and tensors are the program's */
    tp_tensor *tensors;
    uint64_t *output_bytes;
    void *storage;
};

typedef struct command {
    struct command *next;
    tp_program *program;
    tp_event *event;      /* instead of a program */
    tp_status injected;   /* what becomes of it, not of commands that wait before it */
    tp_buffer *buffers[]; /* inputs, then outputs */
} command;

struct tp_queue {
    tp_device *device;
    pthread_t thread;
    command *first, *last;
    uint64_t given, done; /* commands */
    uint64_t busy;        /* nanoseconds */
    int waiters;          /* threads in tp_synchronize */
    bool closing;
};

struct tp_event {
    tp_device *device;
    int references;
    bool reached;
    uint64_t busy;
};

/* Errors ------------------------------------------------------------------------------------ */

static _Thread_local char message[LONGEST_MESSAGE];
static _Thread_local const char *failed = "";

const char *tp_message(void) { return message; }

const char *tp_failed_kernel(void) { return failed; }

int32_t tp_version(void) { return TP_VERSION; }

tp_status fail(tp_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    failed = "";
    return status;
}

static tp_status fail_lost(void) { return fail(TP_LOST, "the device is lost"); }

static void release_fault(fault *why)
{
    if (why && --why->references == 0)
        free(why);
}

/* Keep the message of this thread for those who wait later. */
static fault *new_fault(tp_device *device, const char *kernel, tp_status status)
{
    fault *why = calloc(1, sizeof *why);
    if (!why)
        abort(); /* the host is out of memory, and the error would be lost */
    why->references = 1;
    why->status = status;
    why->kernel = kernel;
    snprintf(why->message, sizeof why->message, "%s: %.200s", kernel, message);
    fault **end = &device->untold;
    while (*end) {
        fault *each = *end;
        if (each->told) {
            *end = each->next;
            release_fault(each);
        } else
            end = &each->next;
    }
    *end = why;
    why->references++;
    return why;
}

static tp_status tell(fault *why)
{
    why->told = true;
    fail(why->status, "%s", why->message);
    failed = why->kernel;
    return why->status;
}

/* Handles ----------------------------------------------------------------------------------- */

/* Unlock the device; the last one who leaves frees it. */
static void leave(tp_device *device)
{
    bool last = device->references == 0;
    pthread_mutex_unlock(&device->lock);
    if (!last)
        return;
    while (device->untold) {
        fault *next = device->untold->next;
        release_fault(device->untold);
        device->untold = next;
    }
    pthread_cond_destroy(&device->changed);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

/* Lock the device to free a handle of it; false in a child, which must free nothing. */
static bool enter_to_free(tp_device *device)
{
    if (getpid() != device->process)
        return false;
    pthread_mutex_lock(&device->lock);
    return true;
}

static void release_buffer(tp_buffer *buffer)
{
    if (--buffer->references)
        return;
    buffer->device->used -= buffer->reserved;
    buffer->device->references--;
    release_fault(buffer->poison);
    free(buffer->data);
    free(buffer);
}

static void release_program(tp_program *program)
{
    if (--program->references)
        return;
    program->device->references--;
    free(program->storage);
    free(program);
}

static void release_event(tp_event *event)
{
    if (--event->references)
        return;
    event->device->references--;
    free(event);
}

/* The device -------------------------------------------------------------------------------- */

tp_status tp_device_open(int32_t number, tp_device **device)
{
    if (number != 0)
        return fail(TP_UNAVAILABLE, "there is no device '%d', only device 0", number);
    tp_device *opened = calloc(1, sizeof *opened);
    if (!opened)
        return fail(TP_UNAVAILABLE, "the host is out of memory");
    pthread_mutex_init(&opened->lock, NULL);
    pthread_cond_init(&opened->changed, NULL);
    opened->references = 1;
    opened->process = getpid();
    opened->limit = MEMORY;
    *device = opened;
    return TP_OK;
}

void tp_device_free(tp_device *device)
{
    if (!enter_to_free(device))
        return;
    device->references--;
    leave(device);
}

const char *tp_device_name(const tp_device *device)
{
    (void)device;
    return "a thread in the place of a device";
}

tp_status tp_device_state(tp_device *device)
{
    pthread_mutex_lock(&device->lock);
    bool lost = device->lost;
    pthread_mutex_unlock(&device->lock);
    return lost ? fail_lost() : TP_OK;
}

void tp_device_limit(tp_device *device, uint64_t bytes)
{
    pthread_mutex_lock(&device->lock);
    device->limit = bytes;
    pthread_mutex_unlock(&device->lock);
}

void tp_device_memory(tp_device *device, uint64_t *used, uint64_t *limit)
{
    pthread_mutex_lock(&device->lock);
    *used = device->used;
    *limit = device->limit;
    pthread_mutex_unlock(&device->lock);
}

tp_status tp_device_inject(tp_device *device, tp_status status)
{
    pthread_mutex_lock(&device->lock);
    device->injected = status;
    pthread_mutex_unlock(&device->lock);
    return TP_OK;
}

/* Memory ------------------------------------------------------------------------------------ */

/* Allocate with the lock held. */
static tp_status allocate(tp_device *device, uint64_t bytes, tp_buffer **buffer)
{
    uint64_t reserved = bytes + (ALIGNMENT - bytes % ALIGNMENT); /* 64 bytes for an empty tensor */
    while (device->used > device->limit || reserved > device->limit - device->used) {
        if (device->waiting == 0)
            return fail(TP_OUT_OF_MEMORY, "no room for %llu bytes: %llu of %llu are in use",
                        (unsigned long long)bytes, (unsigned long long)device->used,
                        (unsigned long long)device->limit);
        pthread_cond_wait(&device->changed, &device->lock);
    }
    tp_buffer *made = calloc(1, sizeof *made);
    void *data = NULL; /* of `bytes` bytes, so that sanitizers see each access behind them */
    if (!made || posix_memalign(&data, ALIGNMENT, bytes ? bytes : 1)) {
        free(made);
        return fail(TP_OUT_OF_MEMORY, "the host has no room for %llu bytes",
                    (unsigned long long)bytes);
    }
    *made = (tp_buffer){.device = device, .references = 1, .data = data, .bytes = bytes,
                        .reserved = reserved};
    device->references++;
    device->used += reserved;
    *buffer = made;
    return TP_OK;
}

tp_status tp_buffer_new(tp_device *device, uint64_t bytes, const void *host, tp_buffer **buffer)
{
    pthread_mutex_lock(&device->lock);
    tp_status status = device->lost ? fail_lost() : allocate(device, bytes, buffer);
    pthread_mutex_unlock(&device->lock);
    if (status)
        return status;
    if (bytes)
        memcpy((*buffer)->data, host, bytes); /* nobody else has it yet */
    (*buffer)->ready = true;
    return TP_OK;
}

tp_status tp_buffer_read(tp_buffer *buffer, void *host, uint64_t bytes)
{
    tp_device *device = buffer->device;
    tp_status status = TP_OK;
    pthread_mutex_lock(&device->lock);
    while (!buffer->ready && !device->lost)
        pthread_cond_wait(&device->changed, &device->lock);
    if (buffer->ready && buffer->poison)
        status = tell(buffer->poison);
    else if (device->lost)
        status = fail_lost();
    pthread_mutex_unlock(&device->lock);
    if (status == TP_OK && bytes)
        memcpy(host, buffer->data, bytes); /* the caller keeps the buffer, and no command changes it */
    return status;
}

void tp_buffer_free(tp_buffer *buffer)
{
    tp_device *device = buffer->device;
    if (!enter_to_free(device))
        return;
    release_buffer(buffer);
    leave(device);
}

/* Programs ---------------------------------------------------------------------------------- */

static uint64_t bytes_of(const tp_tensor *tensor)
{
    uint64_t bytes = tensor->dtype.bits / 8;
    for (int32_t axis = 0; axis < tensor->ndim; axis++)
        bytes *= (uint64_t)tensor->shape[axis];
    return bytes;
}

/* REPLACE: compile for these types, and return TP_UNSUPPORTED for those that the kernel cannot do. Here a
   program is a copy of the call. */
tp_status tp_program_new(tp_device *device, const tp_kernel *kernel, const tp_call *call,
                         tp_program **program)
{
    int32_t count = call->n_inputs + call->n_outputs;
    size_t numbers = 0;
    for (int32_t i = 0; i < count; i++) {
        const tp_tensor *each = i < call->n_inputs ? &call->inputs[i]
                                                   : &call->outputs[i - call->n_inputs];
        numbers += 2 * (size_t)each->ndim;
    }
    size_t attributes = (size_t)call->n_attributes * sizeof(tp_number);
    size_t tensors = (size_t)count * (sizeof(tp_tensor) + sizeof(uint64_t));
    tp_program *made = calloc(1, sizeof *made);
    char *storage = made ? malloc(1 + attributes + tensors + numbers * sizeof(int64_t)) : NULL;
    if (!storage) {
        free(made);
        return fail(TP_OUT_OF_MEMORY, "the host is out of memory");
    }
    tp_number *copied = (tp_number *)storage;
    tp_tensor *next = (tp_tensor *)(storage + attributes);
    uint64_t *sizes = (uint64_t *)(next + count);
    int64_t *place = (int64_t *)(sizes + count);
    if (attributes)
        memcpy(copied, call->attributes, attributes);
    *made = (tp_program){.device = device, .references = 1, .kernel = kernel, .call = *call,
                         .tensors = next, .output_bytes = sizes, .storage = storage};
    made->call.attributes = copied;
    made->call.inputs = next;
    made->call.outputs = next + call->n_inputs;
    for (int32_t i = 0; i < count; i++, next++) {
        *next = i < call->n_inputs ? call->inputs[i] : call->outputs[i - call->n_inputs];
        size_t length = (size_t)next->ndim * sizeof(int64_t);
        if (i >= call->n_inputs)
            *sizes++ = bytes_of(next);
        if (length) {
            next->shape = memcpy(place, next->shape, length);
            next->strides = memcpy(place + next->ndim, next->strides, length);
        }
        place += 2 * next->ndim;
    }
    pthread_mutex_lock(&device->lock);
    device->references++;
    pthread_mutex_unlock(&device->lock);
    *program = made;
    return TP_OK;
}

void tp_program_free(tp_program *program)
{
    tp_device *device = program->device;
    if (!enter_to_free(device))
        return;
    release_program(program);
    leave(device);
}

/* Run a program on the data of buffers, in the thread of a queue. */
static tp_status run(const command *each)
{
    const tp_program *program = each->program;
    tp_call call = program->call;
    int32_t count = call.n_inputs + call.n_outputs;
    tp_tensor *tensors = malloc((size_t)count * sizeof *tensors);
    if (!tensors)
        return fail(TP_OUT_OF_MEMORY, "the host is out of memory");
    memcpy(tensors, program->tensors, (size_t)count * sizeof *tensors);
    for (int32_t i = 0; i < count; i++)
        tensors[i].data = each->buffers[i]->data;
    call.inputs = tensors;
    call.outputs = tensors + call.n_inputs;
    tp_status status = program->kernel->run(&call);
    free(tensors);
    return status;
}

/* Queues ------------------------------------------------------------------------------------ */

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Run a command; the lock is held before and after, but not while the kernel runs. */
static void execute(tp_queue *queue, command *each)
{
    tp_device *device = queue->device;
    const tp_call *call = &each->program->call;
    const char *kernel = each->program->kernel->name;
    fault *why = NULL;
    for (int32_t i = 0; i < call->n_inputs; i++) {
        while (!each->buffers[i]->ready) /* another queue makes it */
            pthread_cond_wait(&device->changed, &device->lock);
        if (!why && each->buffers[i]->poison) {
            why = each->buffers[i]->poison;
            why->references++;
        }
    }
    if (!why && device->lost)
        why = new_fault(device, kernel, fail_lost());
    if (!why) {
        tp_status status = each->injected;
        while (status == TP_TIMEOUT && !queue->closing)
            pthread_cond_wait(&device->changed, &device->lock);
        pthread_mutex_unlock(&device->lock);
        uint64_t begin = now();
        status = status ? fail(status, "it was made to fail") : run(each);
        uint64_t took = now() - begin;
        pthread_mutex_lock(&device->lock);
        queue->busy += took;
        device->lost = device->lost || status == TP_LOST || status == TP_TIMEOUT;
        if (status)
            why = new_fault(device, kernel, status);
    }
    for (int32_t i = 0; i < call->n_inputs + call->n_outputs; i++) {
        if (i >= call->n_inputs) {
            each->buffers[i]->ready = true;
            each->buffers[i]->poison = why;
            if (why)
                why->references++;
        }
        release_buffer(each->buffers[i]);
    }
    release_fault(why);
    release_program(each->program);
    device->waiting--;
}

static void *work(void *argument)
{
    tp_queue *queue = argument;
    tp_device *device = queue->device;
    pthread_mutex_lock(&device->lock);
    for (;;) {
        while (!queue->first && !queue->closing)
            pthread_cond_wait(&device->changed, &device->lock);
        command *each = queue->first;
        if (!each)
            break;
        queue->first = each->next;
        if (each->event) {
            each->event->reached = true;
            each->event->busy = queue->busy;
            release_event(each->event);
        } else
            execute(queue, each);
        queue->done++;
        free(each);
        pthread_cond_broadcast(&device->changed);
    }
    pthread_mutex_unlock(&device->lock);
    return NULL;
}

/* Append with the lock held. */
static void give(tp_queue *queue, command *each)
{
    if (queue->first)
        queue->last->next = each;
    else
        queue->first = each;
    queue->last = each;
    queue->given++;
    pthread_cond_broadcast(&queue->device->changed);
}

tp_status tp_queue_new(tp_device *device, tp_queue **queue)
{
    tp_queue *made = calloc(1, sizeof *made);
    if (!made)
        return fail(TP_OUT_OF_MEMORY, "the host is out of memory");
    made->device = device;
    sigset_t all, before; /* signals are for the threads of the program */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&made->thread, NULL, work, made);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        free(made);
        return fail(TP_UNAVAILABLE, "no thread can be started: %s", strerror(error));
    }
    pthread_mutex_lock(&device->lock);
    device->references++;
    pthread_mutex_unlock(&device->lock);
    *queue = made;
    return TP_OK;
}

void tp_queue_free(tp_queue *queue)
{
    tp_device *device = queue->device;
    if (!enter_to_free(device))
        return;
    queue->closing = true;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    pthread_join(queue->thread, NULL);
    pthread_mutex_lock(&device->lock);
    while (queue->waiters)
        pthread_cond_wait(&device->changed, &device->lock);
    free(queue);
    device->references--;
    leave(device);
}

tp_status tp_launch(tp_queue *queue, tp_program *program, tp_buffer *const *inputs,
                    tp_buffer **outputs)
{
    tp_device *device = queue->device;
    const tp_call *call = &program->call;
    size_t count = (size_t)(call->n_inputs + call->n_outputs);
    command *each = calloc(1, sizeof *each + count * sizeof *each->buffers);
    if (!each)
        return fail(TP_OUT_OF_MEMORY, "the host is out of memory");
    pthread_mutex_lock(&device->lock);
    tp_status status = device->lost ? fail_lost() : TP_OK;
    int32_t made = 0;
    while (!status && made < call->n_outputs) {
        status = allocate(device, program->output_bytes[made], &outputs[made]);
        if (!status)
            made++;
    }
    if (status) {
        while (made)
            release_buffer(outputs[--made]);
        free(each);
    } else {
        for (int32_t i = 0; i < call->n_inputs; i++)
            each->buffers[i] = inputs[i];
        for (int32_t i = 0; i < call->n_outputs; i++)
            each->buffers[call->n_inputs + i] = outputs[i];
        for (size_t i = 0; i < count; i++)
            each->buffers[i]->references++;
        each->program = program;
        each->injected = device->injected;
        device->injected = TP_OK;
        program->references++;
        device->waiting++;
        give(queue, each);
    }
    pthread_mutex_unlock(&device->lock);
    return status;
}

tp_status tp_synchronize(tp_queue *queue)
{
    tp_device *device = queue->device;
    tp_status status = TP_OK;
    pthread_mutex_lock(&device->lock);
    uint64_t until = queue->given;
    queue->waiters++;
    while (queue->done < until)
        pthread_cond_wait(&device->changed, &device->lock);
    queue->waiters--;
    pthread_cond_broadcast(&device->changed);
    while (device->untold) {
        fault *each = device->untold;
        device->untold = each->next;
        if (!status && !each->told)
            status = tell(each);
        release_fault(each);
    }
    if (!status && device->lost)
        status = fail_lost();
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* Events ------------------------------------------------------------------------------------ */

tp_status tp_event_new(tp_queue *queue, tp_event **event)
{
    tp_event *made = calloc(1, sizeof *made);
    command *each = calloc(1, sizeof *each);
    if (!made || !each) {
        free(made);
        free(each);
        return fail(TP_OUT_OF_MEMORY, "the host is out of memory");
    }
    made->device = queue->device;
    made->references = 2; /* the handle and the command */
    each->event = made;
    pthread_mutex_lock(&queue->device->lock);
    queue->device->references++;
    give(queue, each);
    pthread_mutex_unlock(&queue->device->lock);
    *event = made;
    return TP_OK;
}

uint64_t tp_event_wait(tp_event *event)
{
    tp_device *device = event->device;
    pthread_mutex_lock(&device->lock);
    while (!event->reached)
        pthread_cond_wait(&device->changed, &device->lock);
    uint64_t busy = event->busy;
    pthread_mutex_unlock(&device->lock);
    return busy;
}

void tp_event_free(tp_event *event)
{
    tp_device *device = event->device;
    if (!enter_to_free(device))
        return;
    release_event(event);
    leave(device);
}
