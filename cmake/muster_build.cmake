# The flags that every target of ours gets, as one interface target.
add_library(muster_build INTERFACE)
target_include_directories(muster_build INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/stand_ins)
target_compile_options(muster_build INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Below a gigabyte g++ does not look for memory that it could use again, which takes it up to a tenth of its time.
  target_compile_options(muster_build INTERFACE --param=ggc-min-heapsize=1048576)
  # g++ 12 sees at -O2 an overlap in `"text" + std::string` and unset members in a moved std::optional or
  # std::variant, neither of which is there (GCC bugs 105651, 105562).
  target_compile_options(muster_build INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
  if(MUSTER_UNITY)
    # A group of sources includes them as g++ sees headers, where a type of an unnamed namespace would be a fault.
    target_compile_options(muster_build INTERFACE -Wno-subobject-linkage)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Part of -Wconversion for clang, not for g++.
  target_compile_options(muster_build INTERFACE -Wno-sign-conversion)
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
  # The standard library's own checks: an index past the end, an empty std::optional or std::unique_ptr.
  target_compile_definitions(muster_sanitized INTERFACE _GLIBCXX_ASSERTIONS)
  if(MUSTER_NOT_SANITIZED)
    target_compile_options(muster_sanitized INTERFACE -fno-sanitize=${MUSTER_NOT_SANITIZED})
  endif()
  target_link_options(muster_sanitized INTERFACE -fsanitize=${MUSTER_SANITIZE})
  if(MUSTER_SANITIZE MATCHES address)
    # The tests start muster hundreds of times, and its 160 MB take a quarter longer to start when they are relocated.
    target_link_options(muster_sanitized INTERFACE
      $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 warns of faults that are not there once the sanitizers change its inlining (GCC bug 105329); the unsanitized builds keep these warnings.
    target_compile_options(muster_sanitized INTERFACE
      -Wno-stringop-overflow -Wno-array-bounds)
  endif()
endif()
# For what calls NVML's functions by types with our own structs behind the pointers, as every program does that
# opens the library at run time. Behind muster_sanitized, whose flags it takes back.
add_library(muster_foreign_functions INTERFACE)
if(MUSTER_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(muster_foreign_functions INTERFACE -fno-sanitize=function)
endif()

# Most of the time of the optimised build is code generation too. The engine computes and keeps -O3, as do folders
# marked HOT, which have loops over numbers or bytes; the rest gets by with less.
function(muster_optimise target is_hot is_cold)
  if(MUSTER_SANITIZE AND is_hot)
    # Their tests take minutes with -O0.
    target_compile_options(${target} PRIVATE -O1)
  endif()
  if(MUSTER_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  if(MUSTER_OPTIMISATION)
    target_compile_options(${target} PRIVATE ${MUSTER_OPTIMISATION})
    return()
  endif()
  if(is_hot)
    return()
  endif()
  if(is_cold)
    target_compile_options(${target} PRIVATE -O1)
  else()
    target_compile_options(${target} PRIVATE -O2)
  endif()
endfunction()

# Under the sanitizers most of the compile time is code generation: -O0 for tests, and for folders where nothing is hot.
function(muster_compile_quickly target)
  if(MUSTER_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# A test program. No lines for the sanitizers' reports, which take a sixth of its compile time: gtest tells the line of
# what failed, and a report has the lines of the folder under test.
function(muster_compile_test target)
  muster_compile_quickly(${target})
  # g++ warns of each member that {.name = value} leaves to its default; clang, which compiles them too, does not.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-missing-field-initializers>)
  if(MUSTER_SANITIZE)
    target_compile_options(${target} PRIVATE -g0)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

if(MUSTER_UNITY)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()

find_program(ccache ccache)
if(ccache)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ccache})
endif()
find_program(mold mold)
if(mold)
  add_link_options(-fuse-ld=mold)
endif()

# A torch file takes up to 1.3 GB and 13 s to compile: at most two at once.
set_property(GLOBAL PROPERTY JOB_POOLS torch=2)

# Compiles the sources of `target` in groups, each group as one file. muster_set_unity_groups() makes the groups.
function(muster_unity target)
  if(NOT MUSTER_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  # A change may make two files of a group clash, so each is read again then.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources} ${PROJECT_SOURCE_DIR}/cmake/unity_groups.py)
  list(JOIN sources "|" line)
  set_property(GLOBAL APPEND_STRING PROPERTY MUSTER_UNITY_SOURCES "${target}|${CMAKE_CURRENT_SOURCE_DIR}|${line}\n")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# To be called once, after the last target: with a process for each, configuring a tree takes 21 s instead of 3.
function(muster_set_unity_groups)
  if(NOT MUSTER_UNITY)
    return()
  endif()
  get_property(lines GLOBAL PROPERTY MUSTER_UNITY_SOURCES)
  set(list_file ${PROJECT_BINARY_DIR}/unity_sources.txt)
  file(WRITE ${list_file} "${lines}")
  execute_process(COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/cmake/unity_groups.py 16 ${list_file}
                  OUTPUT_VARIABLE groups OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" groups "${groups}")
  foreach(line IN LISTS groups)
    string(REPLACE "|" ";" group "${line}")
    list(POP_FRONT group target number)
    set_source_files_properties(${group} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${number})
  endforeach()
endfunction()
