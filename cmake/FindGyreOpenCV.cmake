# OpenCV core, imgproc and imgcodecs from Debian's small packages, which ship no CMake config.
# Defines the target gyre_opencv; headers count as system headers.

find_path(GyreOpenCV_INCLUDE_DIR opencv2/imgcodecs.hpp PATH_SUFFIXES opencv4)
set(GyreOpenCV_LIBRARIES)
foreach(part core imgproc imgcodecs)
  find_library(GyreOpenCV_${part}_LIBRARY opencv_${part})
  list(APPEND GyreOpenCV_LIBRARIES ${GyreOpenCV_${part}_LIBRARY})
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(GyreOpenCV
  REQUIRED_VARS GyreOpenCV_INCLUDE_DIR GyreOpenCV_core_LIBRARY GyreOpenCV_imgproc_LIBRARY GyreOpenCV_imgcodecs_LIBRARY)

if(GyreOpenCV_FOUND AND NOT TARGET gyre_opencv)
  add_library(gyre_opencv INTERFACE IMPORTED)
  target_include_directories(gyre_opencv SYSTEM INTERFACE ${GyreOpenCV_INCLUDE_DIR})
  target_link_libraries(gyre_opencv INTERFACE ${GyreOpenCV_LIBRARIES})
endif()
mark_as_advanced(GyreOpenCV_INCLUDE_DIR GyreOpenCV_core_LIBRARY GyreOpenCV_imgproc_LIBRARY GyreOpenCV_imgcodecs_LIBRARY)
