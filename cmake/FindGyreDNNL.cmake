# oneDNN; Debian's own config asks for the OpenCL headers, which only its GPU interface needs.
# Defines the target gyre_dnnl.

find_path(GyreDNNL_INCLUDE_DIR dnnl.hpp)
find_library(GyreDNNL_LIBRARY dnnl)
if(GyreDNNL_INCLUDE_DIR)
  file(STRINGS ${GyreDNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h lines REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH)")
  string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
  string(REPLACE ";" "." GyreDNNL_VERSION "${numbers}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(GyreDNNL REQUIRED_VARS GyreDNNL_LIBRARY GyreDNNL_INCLUDE_DIR VERSION_VAR GyreDNNL_VERSION)

if(GyreDNNL_FOUND AND NOT TARGET gyre_dnnl)
  add_library(gyre_dnnl INTERFACE IMPORTED)
  target_include_directories(gyre_dnnl SYSTEM INTERFACE ${GyreDNNL_INCLUDE_DIR})
  target_link_libraries(gyre_dnnl INTERFACE ${GyreDNNL_LIBRARY})
endif()
mark_as_advanced(GyreDNNL_INCLUDE_DIR GyreDNNL_LIBRARY)
