# What gyre is built from. Every package is Debian's; README.md lists them.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt 9 REQUIRED)
find_package(nlohmann_json 3 REQUIRED)
find_package(GyreDNNL 2.6 REQUIRED)
find_package(hwy REQUIRED)
find_package(Eigen3 3.3 REQUIRED NO_MODULE)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(GyreOpenCV REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 2 REQUIRED)

# CUDA, cuDNN and MPI are optional together with what uses them.
set(GYRE_HAVE_CUDA OFF)
if(NOT GYRE_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit 12 QUIET)
  if(CUDAToolkit_FOUND)
    set(GYRE_HAVE_CUDA ON)
    find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  elseif(GYRE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "GYRE_CUDA=ON, but no CUDA toolkit of version 12 or newer was found")
  endif()
endif()
find_package(MPI QUIET COMPONENTS CXX)

# Flags shared by everything we compile.
add_library(gyre_flags INTERFACE)
target_compile_options(gyre_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-stringop-overflow -Wno-restrict  # false alarms of g++ 12 inside fmt and std::string at -O3
  $<$<BOOL:${GYRE_WERROR}>:-Werror>)
if(GYRE_SANITIZE)
  target_compile_options(gyre_flags INTERFACE -fsanitize=${GYRE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(gyre_flags INTERFACE -fsanitize=${GYRE_SANITIZE})
endif()
if(GYRE_THREAD_POOL)
  target_compile_definitions(gyre_flags INTERFACE GYRE_THREAD_POOL)
endif()
if(GYRE_HAVE_CUDA)
  target_compile_definitions(gyre_flags INTERFACE GYRE_WITH_CUDA)
endif()
