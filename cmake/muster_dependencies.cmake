# Third-party packages: Debian's, and the torch wheel. docs/decisions/ has a reason for each.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(simdjson REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(spdlog REQUIRED)
find_package(ZLIB REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc i18n)
find_package(OpenSSL REQUIRED)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(ncursesw REQUIRED IMPORTED_TARGET ncursesw)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)

# Boost is headers alone: Beast's parser, and of Asio the buffers that it reads. They are not ours to warn about.
find_package(Boost 1.81 REQUIRED)
add_library(muster_boost INTERFACE)
target_include_directories(muster_boost SYSTEM INTERFACE ${Boost_INCLUDE_DIRS})
target_compile_definitions(muster_boost INTERFACE BOOST_ASIO_NO_DEPRECATED)
target_link_libraries(muster_boost INTERFACE Threads::Threads)

# The headers alone: src/hub opens the library at run time. CURL::libcurl would link it.
find_package(CURL REQUIRED)
add_library(muster_curl_headers INTERFACE)
target_include_directories(muster_curl_headers SYSTEM INTERFACE ${CURL_INCLUDE_DIRS})
target_link_libraries(muster_curl_headers INTERFACE ${CMAKE_DL_LIBS})
if(BUILD_TESTING)
  find_package(GTest REQUIRED)
endif()

# The wheel without find_package(Torch), which demands a CUDA toolkit. --allow-shlib-undefined: the
# CPU-only set leaves out libraries that libtorch_cpu.so names and never calls.
if(MUSTER_ENGINE)
  if(NOT EXISTS ${MUSTER_TORCH_ROOT}/lib/libtorch_cpu.so)
    message(FATAL_ERROR "No torch 2.11 wheel at MUSTER_TORCH_ROOT=${MUSTER_TORCH_ROOT}: "
                        "run ./quickstart, or configure with -DMUSTER_ENGINE=OFF")
  endif()
  add_library(torch_cpu INTERFACE)
  # After the system's own headers: the wheel carries fmt 12, which must not meet Debian's libfmt.
  target_compile_options(torch_cpu INTERFACE "SHELL:-idirafter ${MUSTER_TORCH_ROOT}/include")
  target_compile_definitions(torch_cpu INTERFACE TORCH_ASSERT_ONLY_METHOD_OPERATORS)
  target_link_libraries(torch_cpu INTERFACE
    ${MUSTER_TORCH_ROOT}/lib/libtorch_cpu.so ${MUSTER_TORCH_ROOT}/lib/libc10.so)
  target_link_options(torch_cpu INTERFACE
    -Wl,--allow-shlib-undefined -Wl,--disable-new-dtags -Wl,-rpath,${MUSTER_TORCH_ROOT}/lib)
endif()
