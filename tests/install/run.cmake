# SPDX-License-Identifier: Apache-2.0
# cmake -D BUILD=... -D WORK=... [-D BUILD_TYPE=... -D GENERATOR=... -D COMPILER=... -D PYTHON=...] -P run.cmake
# Installs BUILD below WORK, builds a consumer against the package there, and runs what was installed.
cmake_policy(VERSION 3.25)
set(prefix ${WORK}/prefix)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})

# step(NAME COMMAND...): sets `out`; anything but success ends the test with what the command said.
function(step name)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE status
                  OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${name} failed (${status}):\n${out}${err}")
  endif()
  set(out "${out}${err}" PARENT_SCOPE)
endfunction()

function(expect text part)
  string(FIND "${text}" "${part}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "'${part}' is missing in:\n${text}")
  endif()
endfunction()

# What the user's environment says about lockstep must not help.
unset(ENV{LOCKSTEP_PLOT_DIR})
unset(ENV{DESTDIR})
set(ENV{LOCKSTEP_PYTHON} ${PYTHON})

step(install ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
step(configure ${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/consumer
     -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_BUILD_TYPE=${BUILD_TYPE})
step(build ${CMAKE_COMMAND} --build ${WORK}/consumer)
step(consumer ${WORK}/consumer/consumer)
expect("${out}" "mixture20")
expect("${out}" "mean[0] =")
step(targets ${prefix}/bin/lockstep targets)
expect("${out}" "mixture20")

# The scripts that draw are found beside the program. Those of the source tree would do too, so a mark in the
# installed copy shows which ones ran.
execute_process(COMMAND ${PYTHON} -c "import matplotlib, netCDF4" RESULT_VARIABLE none OUTPUT_QUIET ERROR_QUIET)
set(script ${prefix}/share/lockstep/plot/plot_study.py)
if(NOT EXISTS ${script})
  message(FATAL_ERROR "${script} was not installed")
endif()
file(APPEND ${script} "\n")
file(READ ${script} text)
string(REPLACE "def main(arguments=None):" "def main(arguments=None):\n    Path('installed-scripts').touch()" text "${text}")
file(WRITE ${script} "${text}")
file(WRITE ${WORK}/study.toml [=[
name = "tiny"
replicates = 2
warmup = 50
iterations = 100
[[setting]]
label = "HMC"
target = "bimodal"
sampler = "hmc"
init = "uniform:2"
]=])
step(study ${prefix}/bin/lockstep study study.toml --out out --quiet)
if(NOT EXISTS ${WORK}/installed-scripts)
  message(FATAL_ERROR "the study did not run the installed scripts:\n${out}")
endif()
if(NOT none AND NOT EXISTS ${WORK}/out/tiny.png)
  message(FATAL_ERROR "the installed program drew no picture:\n${out}")
endif()
