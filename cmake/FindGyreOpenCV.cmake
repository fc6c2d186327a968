# OpenCV core, imgproc and imgcodecs from Debian's small packages, which ship no CMake config. Portable builds take the static
# core and imgproc: imgcodecs brings 200 MB of libraries for formats of geography.
# Defines the target gyre_opencv; headers count as system headers.

find_path(GyreOpenCV_INCLUDE_DIR opencv2/imgcodecs.hpp PATH_SUFFIXES opencv4)
set(GyreOpenCV_parts imgcodecs imgproc core)
set(GyreOpenCV_prefix opencv_)
set(GyreOpenCV_suffix "")
if(GYRE_PORTABLE)
  set(GyreOpenCV_parts imgproc core)
  set(GyreOpenCV_prefix libopencv_)
  set(GyreOpenCV_suffix .a)
  find_library(GyreOpenCV_tbb_LIBRARY tbb)
endif()
set(GyreOpenCV_LIBRARIES)
set(GyreOpenCV_needed)
foreach(part IN LISTS GyreOpenCV_parts)
  find_library(GyreOpenCV_${part}_LIBRARY ${GyreOpenCV_prefix}${part}${GyreOpenCV_suffix})
  list(APPEND GyreOpenCV_LIBRARIES ${GyreOpenCV_${part}_LIBRARY})
  list(APPEND GyreOpenCV_needed GyreOpenCV_${part}_LIBRARY)
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(GyreOpenCV REQUIRED_VARS GyreOpenCV_INCLUDE_DIR ${GyreOpenCV_needed})

if(GyreOpenCV_FOUND AND NOT TARGET gyre_opencv)
  add_library(gyre_opencv INTERFACE IMPORTED)
  target_include_directories(gyre_opencv SYSTEM INTERFACE ${GyreOpenCV_INCLUDE_DIR})
  target_link_libraries(gyre_opencv INTERFACE ${GyreOpenCV_LIBRARIES})
  if(GYRE_PORTABLE)
    # What is never called goes, and with it the need for LAPACK.
    target_link_libraries(gyre_opencv INTERFACE ${GyreOpenCV_tbb_LIBRARY} ${CMAKE_DL_LIBS})
    target_link_options(gyre_opencv INTERFACE -Wl,--gc-sections)
  endif()
endif()
mark_as_advanced(GyreOpenCV_INCLUDE_DIR GyreOpenCV_tbb_LIBRARY ${GyreOpenCV_needed})
