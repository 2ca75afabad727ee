# SPDX-License-Identifier: Apache-2.0
# Compiles a first mistake in a density and one in a transition, and holds the compiler's complaint of each to under ten
# lines that name the concept and the member.
#   cmake -D COMPILER=c++ -D SOURCE=tree -D INCLUDES=a;b -P run.cmake
list(TRANSFORM INCLUDES PREPEND -I)
function(expect_complaint source concept member)
  execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -I${SOURCE} ${INCLUDES} ${SOURCE}/tests/misuse/${source}
    RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  string(REGEX MATCHALL "\n" ends "${text}")
  list(LENGTH ends lines)
  message("${text}(${lines} lines)")
  if(status EQUAL 0 OR lines GREATER_EQUAL 10 OR NOT text MATCHES "${concept}: .* ${member}\\(")
    message(FATAL_ERROR "not a short complaint")
  endif()
endfunction()
expect_complaint(misspelt.cpp DensityFunction log_density)
expect_complaint(misspelt_transition.cpp TransitionFunction begin)
