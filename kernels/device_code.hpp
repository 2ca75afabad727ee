// SPDX-License-Identifier: Apache-2.0
#pragma once
// LOCKSTEP_DEVICE_CODE: this file is being compiled for a device, and leaves out what is for the host alone.
#ifdef __CUDACC__
#define LOCKSTEP_DEVICE_CODE
#endif
