# SPDX-License-Identifier: Apache-2.0
# Writes a copy of a source with faults in it that LOCKSTEP_FAULT chooses between when the program runs:
#   cmake -D FROM=file -D TO=file -P mutate.cmake
# Each wait can be left out, by the name of the function it stands in; the guard of each kernel (guard); and one of
# the working rows (rows). A source where nothing is found to change is an error.
file(READ ${FROM} text)
set(changed "${text}")
string(REGEX REPLACE "\n( +)wait\\(\\);" "\n\\1if (!::emulated::fault(__func__)) wait();" changed "${changed}")
string(REGEX REPLACE "\n( +)(LOCKSTEP_CHECK_CUDA\\(cudaStreamSynchronize\\(stream_\\)\\);)"
  "\n\\1if (!::emulated::fault(__func__)) \\2" changed "${changed}")
string(REPLACE "if (chain < b.tiles * kTile)" "if (::emulated::fault(\"guard\") || chain < b.tiles * kTile)"
  changed "${changed}")
string(REPLACE "if (chain >= b.tiles * kTile)" "if (!::emulated::fault(\"guard\") && chain >= b.tiles * kTile)"
  changed "${changed}")
string(REPLACE "if (chain >= chains)" "if (!::emulated::fault(\"guard\") && chain >= chains)" changed "${changed}")
string(REPLACE "shared_bytes<R>(numbers, model.rows())"
  "shared_bytes<R>(numbers, model.rows() - ::emulated::fault(\"rows\"))" changed "${changed}")
if(changed STREQUAL text)
  message(FATAL_ERROR "${FROM}: nothing to change")
endif()
file(WRITE ${TO} "${changed}")
