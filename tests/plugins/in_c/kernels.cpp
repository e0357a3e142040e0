// A table of one kernel in C++, which halves its input. The test sets the row by macros.
#include "tensorplug.h"

#ifndef ROW
#define ROW {"Neg", 1, halve, ""}
#endif

static_assert(sizeof(tp_dtype) == 4 && sizeof(tp_tensor) == 48, "as DLDataType and DLTensor are");

static tp_status halve(const tp_call *call)
{
    const tp_tensor &x = call->inputs[0];
    if (reinterpret_cast<uintptr_t>(x.data) % 64 != 0)
        return TP_FAULT;
    for (int64_t i = 0; i < x.shape[0]; i++)
        static_cast<float *>(call->outputs[0].data)[i] = static_cast<const float *>(x.data)[i] / 2;
    return TP_OK;
}

const tp_kernel *tp_kernels(void)
{
    static const tp_kernel kernels[] = {ROW, {nullptr, 0, nullptr, nullptr}};
    return kernels;
}

const tp_dtype *tp_dtypes(void)
{
    static const tp_dtype dtypes[] = {
        {TP_BOOL, 8, 1}, {TP_INT, 32, 1}, {TP_FLOAT, 32, 1}, {0, 0, 0}};
    return dtypes;
}
