# The flags that every target of ours gets, as one interface target.
add_library(muster_build INTERFACE)
target_include_directories(muster_build INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(muster_build INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees at -O2 an overlap in `"text" + std::string` and unset members in a moved std::optional or
  # std::variant, neither of which is there (GCC bugs 105651, 105562).
  target_compile_options(muster_build INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(MUSTER_WERROR)
  target_compile_options(muster_build INTERFACE -Werror)
endif()

# The torch-free part carries the sanitizers; torch itself is not instrumented, so the engine and the
# worker never do (muster_plain).
add_library(muster_sanitized INTERFACE)
if(MUSTER_SANITIZE)
  target_compile_options(muster_sanitized INTERFACE
    -fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(muster_sanitized INTERFACE -fsanitize=${MUSTER_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 warns of faults that are not there once the sanitizers change its inlining (GCC bug 105329); the unsanitized builds keep these warnings.
    target_compile_options(muster_sanitized INTERFACE
      -Wno-stringop-overflow -Wno-array-bounds)
  endif()
endif()
if(MUSTER_FUZZ)
  # Coverage of the modules themselves, not of the x_fuzz.cpp file alone: what libFuzzer steers by.
  target_compile_options(muster_sanitized INTERFACE -fsanitize=fuzzer-no-link)
endif()

find_program(ccache ccache)
if(ccache)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ccache})
endif()
find_program(mold mold)
if(mold AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options(-fuse-ld=mold)
endif()

# A torch file takes up to 1.3 GB and 13 s to compile: at most two at once.
set_property(GLOBAL PROPERTY JOB_POOLS torch=2)
