# SPDX-License-Identifier: Apache-2.0
# The CUDA back end. CMake 3.25 is older than CUDA 13: it must be told how to ask nvcc for C++20.
set(CMAKE_CUDA_ARCHITECTURES OFF)
if(NOT CMAKE_CUDA_COMPILER)
  find_program(nvcc nvcc HINTS /usr/local/cuda/bin REQUIRED)
  set(CMAKE_CUDA_COMPILER ${nvcc})
endif()
enable_language(CUDA)
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_EXTENSIONS OFF)
find_package(CUDAToolkit REQUIRED)

# Machine code for every architecture from the instructions of the first: nothing here uses what later ones add, and
# they are made once, which is the larger part of compiling. They go along for architectures still to come. A virtual one
# ("80-virtual") has these instructions alone, which a GPU's driver compiles when the program starts: where no GPU will run
# it that shows that all compiles, and is made fast rather than into fast code: in a third of the time.
list(GET LOCKSTEP_CUDA_ARCHITECTURES 0 first)
set(code ${LOCKSTEP_CUDA_ARCHITECTURES})
if(LOCKSTEP_CUDA_ARCHITECTURES MATCHES "virtual" AND NOT LOCKSTEP_CUDA_ARCHITECTURES MATCHES "^[0-9]+-virtual$")
  message(FATAL_ERROR "LOCKSTEP_CUDA_ARCHITECTURES is ${LOCKSTEP_CUDA_ARCHITECTURES}: a virtual architecture stands alone")
elseif(first MATCHES "^([0-9]+)-virtual$")
  set(first ${CMAKE_MATCH_1})
  set(code compute_${first})
  set(own_code "--generate-code=arch=compute_${first},code=sm_${first}")
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.9)
    set(in_haste --Ofast-compile=max)
    set(CMAKE_CUDA_FLAGS_RELEASE "-DNDEBUG")  # and the host's part as it comes
  endif()
else()
  list(TRANSFORM code PREPEND sm_)
  list(APPEND code compute_${first})
  # Three architectures are a quarter of a gigabyte, and slow to make small.
  target_compile_options(lockstep-flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
endif()
string(REPLACE ";" "," code "${code}")
# --default-stream: each host thread has a stream of its own, so that engines of several threads run side by side.
# --fmad=false: as on the CPU, fused multiply-add only where the source says fma. --ftz=true: as on the CPU,
# subnormals are zero.
target_compile_options(lockstep-flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:--generate-code=arch=compute_${first},code=[${code}]>"
  $<$<COMPILE_LANGUAGE:CUDA>:--default-stream=per-thread;--fmad=false;--ftz=true;--expt-relaxed-constexpr>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-fopenmp,-ffp-contract=off,-fno-math-errno,-Wno-unknown-pragmas>)
target_compile_definitions(lockstep-flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:LOCKSTEP_CUDA>)

# Engines for three architectures are by far the largest part of a program: the programs share them.
set(LOCKSTEP_TARGETS_LIBRARY SHARED)
include(GNUInstallDirs)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

# What each kernel uses of registers and memory goes to a log beside its object instead of to the screen; a summary
# is printed once all are compiled.
set(kernel_report ${PROJECT_SOURCE_DIR}/cmake/kernel_report.py)

# lockstep_add_cuda_engines(target source...): compiles the sources into the target. Those named *_registers* hold
# kernels whose rows live in registers; one that spills, or keeps an array in memory, is an error.
function(lockstep_add_cuda_engines target)
  set(sources ${ARGN})
  if(in_haste)
    set(registers ${ARGN})
    list(FILTER registers INCLUDE REGEX "_registers")
    list(FILTER sources EXCLUDE REGEX "_registers")
    lockstep_join(sources ${CMAKE_CURRENT_BINARY_DIR} ${sources})
    list(APPEND sources ${registers})
  endif()
  foreach(source IN LISTS sources)
    set(options -Xptxas=-v)
    if(source MATCHES "_registers")  # made into machine code always
      list(APPEND options ${own_code} -Xptxas=--warn-on-spills,--warn-on-local-memory-usage,--warning-as-error)
    else()
      list(APPEND options ${in_haste})
    endif()
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${options}")
  endforeach()
  file(GLOB own CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/targets/*.cu)
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/targets/cuda_device.cu PROPERTY COMPILE_DEFINITIONS
    LOCKSTEP_CUBLAS_LIBRARY="libcublas.so.${CUDAToolkit_VERSION_MAJOR}")
  target_sources(${target} PRIVATE ${sources} ${own})
  # The runtime stays inside: a test program with kernels of its own has another copy, and the two must not mix.
  target_link_libraries(${target} PRIVATE CUDA::cudart_static)
  # Nor does another's copy of a function stand in for the library's: a test's is compiled in haste.
  target_link_options(${target} PRIVATE LINKER:--exclude-libs,libcudart_static.a LINKER:-Bsymbolic-functions)
  set_target_properties(${target} PROPERTIES
    CUDA_SEPARABLE_COMPILATION OFF
    BUILD_RPATH ${CUDAToolkit_LIBRARY_DIR}  # where cuBLAS is, which is loaded when it is called
    INSTALL_RPATH "${CMAKE_INSTALL_RPATH};${CUDAToolkit_LIBRARY_DIR}"
    CUDA_COMPILER_LAUNCHER "${Python3_EXECUTABLE};${kernel_report};--compile")
  add_custom_target(lockstep-kernel-report ALL
    COMMAND ${Python3_EXECUTABLE} ${kernel_report} --report ${PROJECT_BINARY_DIR}
    DEPENDS ${target} VERBATIM)
endfunction()
