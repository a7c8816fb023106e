/* What Python.h asks of the `pyconfig.h` of a 64-bit Windows, for modules that keep to the stable ABI.

Python installs this file on Windows alone. Here it is included first, and its guard shuts out the one of the machine
that builds. The facts are those of CPython's `PC/pyconfig.h`. */
#ifndef Py_PYCONFIG_H
#define Py_PYCONFIG_H

#define MS_WINDOWS
#define MS_WIN32
#define MS_WIN64
#define NT_THREADS
#define WITH_THREAD
#define HAVE_DECLSPEC_DLL
#define Py_ENABLE_SHARED 1 /* Python is a DLL: its data are imported */
#define PLATLIBDIR "DLLs"

#define SIZEOF_VOID_P 8
#define SIZEOF_TIME_T 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_DOUBLE 8
#define SIZEOF_FLOAT 4
#define SIZEOF_WCHAR_T 2
#define SIZEOF_OFF_T 4
#define SIZEOF_FPOS_T 8
#define SIZEOF_PID_T 4
#define ALIGNOF_SIZE_T 8
#define ALIGNOF_MAX_ALIGN_T 8

typedef long long Py_ssize_t;
#define HAVE_PY_SSIZE_T 1
#define PY_SSIZE_T_MAX 0x7fffffffffffffffLL

#define HAVE_STDARG_PROTOTYPES
#define HAVE_STDINT_H 1
#define HAVE_STDDEF_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRING_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_ERRNO_H
#define HAVE_FCNTL_H

#endif
