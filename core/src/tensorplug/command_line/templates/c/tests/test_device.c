/* The device through its header alone, as a program in C sees it. Sanitizers watch: make debug, make race. */
#include "device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(CONDITION)                                                              \
    do {                                                                               \
        if (!(CONDITION)) {                                                            \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #CONDITION, tp_message()); \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)

enum { COUNT = 1000, THREADS = 4, ROUNDS = 50 };

static tp_device *device;
static tp_queue *queue;

static const tp_kernel *find(const char *name)
{
    const tp_kernel *kernel = tp_kernels();
    while (kernel->name && strcmp(kernel->name, name) != 0)
        kernel++;
    EXPECT(kernel->name);
    return kernel;
}

/* A tensor of one axis. */
static tp_tensor vector(uint8_t code, const int64_t *length)
{
    static const int64_t one = 1;
    return (tp_tensor){.ndim = 1, .dtype = {code, 32, 1}, .shape = length, .strides = &one};
}

/* Make a program of tensors of one axis; `out` has the length of the first input. */
static tp_program *ready(const char *name, const tp_tensor *inputs, int32_t n_inputs, tp_tensor out,
                         const tp_number *attributes, int32_t n_attributes)
{
    tp_call call = {n_inputs, 1, n_attributes, inputs, &out, attributes};
    tp_program *program;
    EXPECT(tp_program_new(device, find(name), &call, &program) == TP_OK);
    return program;
}

static tp_program *ready_to_add(const int64_t *length)
{
    tp_tensor inputs[] = {vector(TP_FLOAT, length), vector(TP_FLOAT, length)};
    return ready("Add", inputs, 2, inputs[0], NULL, 0);
}

static tp_program *ready_to_gather(const int64_t *length)
{
    tp_tensor inputs[] = {vector(TP_FLOAT, length), vector(TP_INT, length)};
    return ready("GatherV2", inputs, 2, inputs[0], (tp_number[]){{0, 0}, {0, 0}}, 2);
}

static tp_buffer *buffer_of(const void *host, uint64_t bytes)
{
    tp_buffer *buffer;
    EXPECT(tp_buffer_new(device, bytes, host, &buffer) == TP_OK);
    return buffer;
}

static tp_buffer *launch(tp_program *program, tp_buffer *first, tp_buffer *second)
{
    tp_buffer *inputs[] = {first, second}, *output;
    EXPECT(tp_launch(queue, program, inputs, &output) == TP_OK);
    return output;
}

static uint64_t used(void)
{
    uint64_t bytes, limit;
    tp_device_memory(device, &bytes, &limit);
    return bytes;
}

/* 1 + 1 + ... : each command reads what the one before has not written yet. */
static void *chain(void *argument)
{
    (void)argument;
    static const int64_t length = COUNT;
    float ones[COUNT], sums[COUNT];
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    tp_program *program = ready_to_add(&length);
    tp_buffer *one = buffer_of(ones, sizeof ones), *sum = buffer_of(ones, sizeof ones);
    for (int round = 0; round < ROUNDS; round++) {
        tp_buffer *next = launch(program, sum, one);
        tp_buffer_free(sum); /* while the command waits */
        sum = next;
    }
    tp_program_free(program);
    EXPECT(tp_buffer_read(sum, sums, sizeof sums) == TP_OK);
    for (int i = 0; i < COUNT; i++)
        EXPECT(sums[i] == ROUNDS + 1);
    tp_buffer_free(one);
    tp_buffer_free(sum);
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, chain, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0);
    EXPECT(tp_synchronize(queue) == TP_OK);
    EXPECT(used() == 0);
}

/* The error of a command comes with the read of its result, and of all that was made of it. */
static void test_late_errors(void)
{
    static const int64_t length = 2;
    const float values[] = {1, 2};
    const int32_t good[] = {1, -2}, bad[] = {0, 5};
    float result[2];
    tp_program *gather = ready_to_gather(&length), *add = ready_to_add(&length);
    tp_buffer *x = buffer_of(values, sizeof values);
    tp_buffer *first = buffer_of(good, sizeof good), *second = buffer_of(bad, sizeof bad);

    tp_buffer *right = launch(gather, x, first), *wrong = launch(gather, x, second);
    tp_buffer *poisoned = launch(add, wrong, x);
    EXPECT(tp_buffer_read(right, result, sizeof result) == TP_OK);
    EXPECT(result[0] == 2 && result[1] == 1);
    EXPECT(tp_buffer_read(poisoned, result, sizeof result) == TP_OUT_OF_RANGE);
    EXPECT(strstr(tp_message(), "GatherV2: index 5 is out of range for an axis of length 2"));
    EXPECT(tp_synchronize(queue) == TP_OK); /* the error has been told */

    tp_buffer *told = launch(gather, x, second);
    EXPECT(tp_buffer_read(told, result, sizeof result) == TP_OUT_OF_RANGE);
    tp_buffer *again = launch(gather, x, second); /* an error that nobody was told */
    EXPECT(tp_synchronize(queue) == TP_OUT_OF_RANGE);
    EXPECT(tp_synchronize(queue) == TP_OK);
    tp_buffer *all[] = {x, first, second, right, wrong, poisoned, told, again};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tp_buffer_free(all[i]);
    tp_program_free(gather);
    tp_program_free(add);
    EXPECT(used() == 0);
}

static void test_memory(void)
{
    static const int64_t length = COUNT;
    float values[COUNT] = {0};
    uint64_t bytes, limit, set = 4 * sizeof values;
    tp_program *add = ready_to_add(&length);
    tp_device_limit(device, set);
    tp_device_memory(device, &bytes, &limit);
    EXPECT(bytes == 0 && limit == set);
    tp_buffer *x = buffer_of(values, sizeof values), *none;
    EXPECT(used() >= sizeof values && used() % 64 == 0);
    EXPECT(tp_buffer_new(device, set, values, &none) == TP_OUT_OF_MEMORY);
    EXPECT(strstr(tp_message(), "no room for 16000 bytes"));
    for (int round = 0; round < ROUNDS; round++) /* there is room when earlier commands have ended */
        tp_buffer_free(launch(add, x, x));
    tp_buffer_free(x);
    tp_program_free(add);
    EXPECT(tp_synchronize(queue) == TP_OK);
    EXPECT(used() == 0);
    tp_device_limit(device, (uint64_t)1 << 30);
}

static void test_events(void)
{
    static const int64_t length = COUNT;
    float values[COUNT] = {0};
    tp_event *before, *after;
    tp_program *add = ready_to_add(&length);
    tp_buffer *x = buffer_of(values, sizeof values);
    EXPECT(tp_event_new(queue, &before) == TP_OK);
    tp_buffer *y = launch(add, x, x);
    EXPECT(tp_event_new(queue, &after) == TP_OK);
    EXPECT(tp_event_wait(after) > tp_event_wait(before));
    tp_event_free(before);
    tp_event_free(after);
    tp_buffer_free(x);
    tp_buffer_free(y);
    tp_program_free(add);
}

/* Handles outlive the device, which goes with the last of them. */
static void test_loss_and_closing(void)
{
    static const int64_t length = 2;
    float values[] = {1, 2};
    tp_program *add = ready_to_add(&length);
    tp_buffer *x = buffer_of(values, sizeof values), *inputs[] = {x, x}, *none;
    EXPECT(tp_device_inject(device, TP_LOST) == TP_OK);
    EXPECT(tp_launch(queue, add, inputs, &none) == TP_OK);
    EXPECT(tp_synchronize(queue) == TP_LOST);
    EXPECT(strcmp(tp_failed_kernel(), "Add") == 0);
    tp_buffer_free(none);
    EXPECT(tp_device_state(device) == TP_LOST);
    EXPECT(tp_launch(queue, add, inputs, &none) == TP_LOST);
    EXPECT(tp_buffer_new(device, sizeof values, values, &none) == TP_LOST);
    EXPECT(tp_buffer_read(x, values, sizeof values) == TP_LOST);
    EXPECT(tp_synchronize(queue) == TP_LOST);
    tp_queue_free(queue);
    tp_device_free(device);
    tp_buffer_free(x);
    tp_program_free(add);
}

int main(void)
{
    EXPECT(tp_version() == TP_VERSION);
    EXPECT(tp_device_open(999, &device) == TP_UNAVAILABLE);
    EXPECT(tp_device_open(0, &device) == TP_OK);
    EXPECT(tp_queue_new(device, &queue) == TP_OK);
    test_threads();
    test_late_errors();
    test_memory();
    test_events();
    test_loss_and_closing();
    puts("test_device: passed");
    return 0;
}
