# oneDNN by its header and library. Its own CMake package is not used: as Debian builds it, that package insists on
# OpenCL's development files, which the CPU engine does not need.
#
# Defines OneDNN_FOUND, OneDNN_VERSION and the target OneDNN::dnnl.
find_path(OneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(OneDNN_LIBRARY dnnl)
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)
if(OneDNN_INCLUDE_DIR)
  file(STRINGS ${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h _onednn_numbers REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^;]* ([0-9]+)" "\\1" _onednn_numbers "${_onednn_numbers}")
  string(REPLACE ";" "." OneDNN_VERSION "${_onednn_numbers}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR VERSION_VAR OneDNN_VERSION)
if(OneDNN_FOUND AND NOT TARGET OneDNN::dnnl)
  add_library(OneDNN::dnnl UNKNOWN IMPORTED)
  set_target_properties(OneDNN::dnnl PROPERTIES IMPORTED_LOCATION ${OneDNN_LIBRARY}
                                                INTERFACE_INCLUDE_DIRECTORIES ${OneDNN_INCLUDE_DIR})
endif()
