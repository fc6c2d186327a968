# gyre_room(NAME [EXCLUDE FOLDER_OR_FILE…] [PUBLIC LIB…] [PRIVATE LIB…]): the library gyre_NAME from every source below NAME/.
function(gyre_room name)
  cmake_parse_arguments(ROOM "" "" "EXCLUDE;PUBLIC;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${name}/*.cpp)
  foreach(path IN LISTS ROOM_EXCLUDE GYRE_CUDA_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "/${path}(/|$)")
  endforeach()
  # One copy of the kernels for all programs of a bundle; no -D, so that both forms share objects in ccache.
  if(GYRE_PORTABLE AND name MATCHES "^(core|kernels)$")
    add_library(gyre_${name} SHARED ${sources})
    set_target_properties(gyre_${name} PROPERTIES DEFINE_SYMBOL "")
  else()
    add_library(gyre_${name} STATIC ${sources})
  endif()
  add_library(gyre::${name} ALIAS gyre_${name})
  set_target_properties(gyre_${name} PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${name})
  target_include_directories(gyre_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/gyre>)
  target_compile_features(gyre_${name} PUBLIC cxx_std_20)
  target_link_libraries(gyre_${name} PUBLIC ${ROOM_PUBLIC} PRIVATE $<BUILD_INTERFACE:gyre_flags> ${ROOM_PRIVATE} Threads::Threads)
  gyre_cuda_kernels(${name})
endfunction()
