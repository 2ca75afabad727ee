# SPDX-License-Identifier: Apache-2.0
# cmake -D SOURCE=... -D WORK=... [-D GENERATOR=... -D COMPILER=...] -P run.cmake
# Configures a program of one target and one sampler: it compiles what these need, and a name that is in no list is an error.
cmake_policy(VERSION 3.25)

# configure(TARGETS SAMPLERS): sets `status` and `out`.
function(configure targets samplers)
  file(REMOVE_RECURSE ${WORK})
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK} -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER}
    -D LOCKSTEP_MPI=OFF -D LOCKSTEP_TARGETS=${targets} -D LOCKSTEP_SAMPLERS=${samplers}
    RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
  set(status ${status} PARENT_SCOPE)
  set(out "${out}${err}" PARENT_SCOPE)
endfunction()

configure(mixture20 hmc)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${out}")
endif()
file(READ ${WORK}/generated/targets/all.hpp targets)
file(READ ${WORK}/generated/targets/transitions.cpp transitions)
file(READ ${WORK}/compile_commands.json commands)
foreach(part "targets,Mixture20Target,GaussianTarget" "transitions,Hmc,Nuts"
    "commands,targets/mixture.cpp,targets/radon_exact.cpp" "commands,mixture_cpu.cpp,gaussian_cpu.cpp"
    "commands,transition_mode_jump_cpu.cpp,transition_nuts_cpu.cpp" "commands,cli/main.cpp,unit_layout.cpp")
  string(REPLACE "," ";" part "${part}")
  list(GET part 0 text)
  list(GET part 1 has)
  list(GET part 2 has_not)
  if(NOT "${${text}}" MATCHES "${has}" OR "${${text}}" MATCHES "${has_not}")
    message(FATAL_ERROR "${text}: ${has} is missing, or ${has_not} there")
  endif()
endforeach()
configure(scattered hmc)
file(READ ${WORK}/compile_commands.json commands)
if(NOT commands MATCHES "targets/mixture.cpp" OR commands MATCHES "mixture_cpu.cpp")
  message(FATAL_ERROR "a target whose data another's file makes is without that, or has the other's engines")
endif()
foreach(wrong "mixture21 hmc" "mixture20 hcm" "mixture20 nuts")
  string(REPLACE " " ";" wrong "${wrong}")
  configure(${wrong})
  if(status EQUAL 0 OR NOT out MATCHES "LOCKSTEP_(TARGETS|SAMPLERS) (has (mixture21|hcm)|is without hmc)")
    message(FATAL_ERROR "${wrong}: ${out}")
  endif()
endforeach()
