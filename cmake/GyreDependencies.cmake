# What gyre is built from. Every package is Debian's; README.md lists them.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
if(GYRE_ONEDNN OR NOT GYRE_THREAD_POOL)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
endif()
find_package(fmt 9 REQUIRED)
find_package(nlohmann_json 3 REQUIRED)
if(GYRE_ONEDNN)
  find_package(GyreDNNL 2.6 REQUIRED)
endif()
find_package(hwy REQUIRED)
find_package(Eigen3 3.3 REQUIRED NO_MODULE)
if(NOT GYRE_KERNELS_ONLY)
  find_package(ZLIB REQUIRED)
  find_package(JPEG REQUIRED)
  find_package(PNG REQUIRED)
  find_package(GyreOpenCV REQUIRED)
  find_package(yaml-cpp REQUIRED)
  find_package(CLI11 2 REQUIRED)
endif()

# CUDA and MPI are optional together with what uses them.
include(GyreCuda)
find_package(MPI QUIET COMPONENTS CXX)

# Flags shared by everything we compile.
add_library(gyre_flags INTERFACE)
set(gyre_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow$<SEMICOLON>-Wno-restrict>  # false alarms of g++ 12 inside fmt and std::string at -O3
  $<$<BOOL:${GYRE_WERROR}>:-Werror>)
target_compile_options(gyre_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${gyre_warnings}>")
if(GYRE_CUDA_FORM STREQUAL "nvidia")
  # A kernel that spills registers or needs a stack frame is a mistake.
  set(gyre_cuda_warnings -Xcompiler=-Wall,-Wextra -Xptxas=-warn-spills,-warn-lmem-usage
    $<$<BOOL:${GYRE_WERROR}>:-Werror=all-warnings$<SEMICOLON>-Xptxas=-Werror>)
  target_compile_options(gyre_flags INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:${gyre_cuda_warnings}>")
endif()
if(GYRE_SANITIZE)
  target_compile_options(gyre_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${GYRE_SANITIZE}$<SEMICOLON>-fno-omit-frame-pointer$<SEMICOLON>-fno-sanitize-recover=all>)
  target_link_options(gyre_flags INTERFACE -fsanitize=${GYRE_SANITIZE})
endif()
if(GYRE_THREAD_POOL)
  target_compile_definitions(gyre_flags INTERFACE GYRE_THREAD_POOL)
endif()
if(NOT GYRE_CUDA_FORM STREQUAL "none")
  target_compile_definitions(gyre_flags INTERFACE GYRE_WITH_CUDA)
endif()
