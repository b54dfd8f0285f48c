# muster_module(planner DEPS topology spec base  SOURCES kv_cache.cpp  TESTS kv_cache_test.cpp)
#
# One folder, one library `muster_<name>`, one test program `<name>_test`. DEPS are the arrows this folder
# may use (tests/tidy checks the includes against them); EXTERNAL are third-party targets, kept private
# to it. TORCH marks the two folders that link torch: no sanitizers, and a small compile pool.
# The optimised build takes -O2. HOT says that the folder has loops over numbers or bytes: -O3. COLD says that nothing
# in it is hot: -O1, and no optimisation under the sanitizers. CHECKED_UNOPTIMISED: that alone, for a large folder.
# With MUSTER_UNITY its sources are compiled in groups (cmake/unity_groups.py).
# FUZZ lists x_fuzz.cpp files, one libFuzzer program each, whose corpus is the folder corpus/x.
function(muster_module name)
  cmake_parse_arguments(arg "TORCH;HOT;COLD;CHECKED_UNOPTIMISED" "" "DEPS;EXTERNAL;SOURCES;TESTS;TEST_EXTERNAL;FUZZ" ${ARGN})

  set(flavour muster_sanitized)
  if(arg_TORCH)
    unset(flavour)
    list(APPEND arg_EXTERNAL torch_cpu)
  endif()

  list(TRANSFORM arg_DEPS PREPEND muster_)
  if(arg_SOURCES)
    add_library(muster_${name} STATIC ${arg_SOURCES})
    muster_unity(muster_${name})
    target_link_libraries(muster_${name} PUBLIC muster_build ${flavour} ${arg_DEPS} PRIVATE ${arg_EXTERNAL})
    if(NOT arg_TORCH)
      muster_optimise(muster_${name} "${arg_HOT}" "${arg_COLD}")
    endif()
    if(arg_COLD OR arg_CHECKED_UNOPTIMISED)
      muster_compile_quickly(muster_${name})
    endif()
    if(MUSTER_FUZZ_COUNTERS AND arg_FUZZ)
      # Of the folder itself, not of the x_fuzz.cpp file alone.
      target_compile_options(muster_${name} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
    if(arg_TORCH)
      set_target_properties(muster_${name} PROPERTIES JOB_POOL_COMPILE torch)
    endif()
  else()
    add_library(muster_${name} INTERFACE)
    target_link_libraries(muster_${name} INTERFACE muster_build ${flavour} ${arg_DEPS})
  endif()

  if(BUILD_TESTING AND arg_TESTS AND (arg_TORCH OR MUSTER_UNIT_TESTS))
    add_executable(${name}_test ${arg_TESTS})
    muster_unity(${name}_test)
    muster_compile_test(${name}_test)
    target_link_libraries(${name}_test PRIVATE muster_${name} ${arg_EXTERNAL} ${arg_TEST_EXTERNAL}
                          GTest::gtest GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE
      MUSTER_SOURCE_DIR="${PROJECT_SOURCE_DIR}" MUSTER_BINARY_DIR="${PROJECT_BINARY_DIR}")
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 300)
    muster_start_early(${name})
  endif()

  if(MUSTER_FUZZ)
    foreach(fuzz IN LISTS arg_FUZZ)
      get_filename_component(program ${fuzz} NAME_WE)
      add_executable(${program} ${fuzz})
      target_compile_options(${program} PRIVATE -fsanitize=fuzzer)
      target_link_options(${program} PRIVATE -fsanitize=fuzzer)
      target_link_libraries(${program} PRIVATE muster_${name} ${arg_EXTERNAL})
      add_dependencies(fuzzers ${program})
    endforeach()
  endif()

  # Every header must stand on its own: a file for each that includes nothing else, in the target `headers`.
  file(GLOB headers RELATIVE ${PROJECT_SOURCE_DIR}/src CONFIGURE_DEPENDS *.h)
  foreach(header IN LISTS headers)
    string(MAKE_C_IDENTIFIER ${header} unit)
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/alone/${unit}.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${header}\"  // NOLINT\n")
    list(APPEND units ${unit})
  endforeach()
  if(units)
    add_library(${name}_headers OBJECT EXCLUDE_FROM_ALL ${units})
    target_link_libraries(${name}_headers PRIVATE muster_${name} ${arg_EXTERNAL})
    target_compile_options(${name}_headers PRIVATE -O0 -g0)
    if(arg_TORCH)
      set_target_properties(${name}_headers PROPERTIES JOB_POOL_COMPILE torch)
    endif()
    add_dependencies(headers ${name}_headers)
  endif()
endfunction()

add_custom_target(fuzzers COMMENT "Builds the libFuzzer programs")
