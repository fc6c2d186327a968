# Kernels (.cu) compiled by the C++ compiler against the SIMT emulator of tests/simt.
if(GYRE_TESTS OR GYRE_CUDA STREQUAL "EMULATED")
  find_package(Boost 1.74 QUIET COMPONENTS context)
endif()

if(Boost_FOUND AND NOT GYRE_SANITIZE MATCHES "thread")  # ThreadSanitizer knows no fibers
  file(GLOB emulator CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/simt/emulator/*.cpp)
  add_library(gyre_simt STATIC EXCLUDE_FROM_ALL ${emulator})
  target_include_directories(gyre_simt PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(gyre_simt PUBLIC fmt::fmt PRIVATE gyre_flags Boost::context)
elseif(GYRE_CUDA STREQUAL "EMULATED")
  message(FATAL_ERROR "GYRE_CUDA=EMULATED needs Boost.Context (libboost-context-dev) and a build without ThreadSanitizer")
endif()

# gyre_simt_sources(TARGET [CHECKED] SOURCE.cu…): adds kernels to a target of the calling directory. They keep to C++17, as
# for nvcc. CHECKED: every access is announced to __tsan_*, which the target must define.
function(gyre_simt_sources target)
  cmake_parse_arguments(SIMT "CHECKED" "" "" ${ARGN})
  set(sources ${SIMT_UNPARSED_ARGUMENTS})
  add_library(${target}_kernels OBJECT ${sources})
  set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX)
  set_target_properties(${target}_kernels PROPERTIES CXX_STANDARD 17 LINKER_LANGUAGE CXX)
  target_include_directories(${target}_kernels PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target}_kernels PRIVATE gyre_flags)
  if(SIMT_CHECKED)
    target_compile_options(${target}_kernels PRIVATE
      -O1 -g1 -fsanitize=thread --param tsan-instrument-func-entry-exit=0)
  endif()
  target_link_libraries(${target} PRIVATE ${target}_kernels gyre_simt)
endfunction()
