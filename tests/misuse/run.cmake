# SPDX-License-Identifier: Apache-2.0
# Compiles misspelt.cpp, and holds the compiler's complaint to under ten lines that name the concept and the member.
#   cmake -D COMPILER=c++ -D SOURCE=tree -D INCLUDES=a;b -P run.cmake
list(TRANSFORM INCLUDES PREPEND -I)
execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -I${SOURCE} ${INCLUDES} ${SOURCE}/tests/misuse/misspelt.cpp
  RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
string(REGEX MATCHALL "\n" ends "${text}")
list(LENGTH ends lines)
message("${text}(${lines} lines)")
if(status EQUAL 0 OR lines GREATER_EQUAL 10 OR NOT text MATCHES "DensityFunction" OR NOT text MATCHES "log_density")
  message(FATAL_ERROR "not a short complaint")
endif()
