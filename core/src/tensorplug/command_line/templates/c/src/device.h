/* What device.c has for kernels and for tests. */
#ifndef DEVICE_H
#define DEVICE_H

#include "tensorplug.h"

/* Keep a message for tp_message(), as printf writes it, and return the status. */
tp_status fail(tp_status status, const char *format, ...);

#endif
