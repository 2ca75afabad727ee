// SPDX-License-Identifier: Apache-2.0
#pragma once
// Nothing of cuRAND is called where code is not compiled for a device.
