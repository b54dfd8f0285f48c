# ctest -j starts tests in the order of their COST, so that the longest one is not alone at the end. Seconds in a run of
# two at once on two cores; a test that is not named here takes less than 20.
set(muster_long_tests
  commands.printed 550  tidy.clang_tidy 410  command_line 76  bench_run_command 60  jobs 53  embed_equality 65  planner 41
  embed_server 39  coordinator 47  plans.same 37  embed_kill 37
  engine 36  engine_standin 36  standin_faults 25  documents.promises 22  tokenizer 21  screens 21  plans 20  server 20)

function(muster_start_early name)
  list(FIND muster_long_tests ${name} at)
  if(at GREATER_EQUAL 0)
    math(EXPR at "${at} + 1")
    list(GET muster_long_tests ${at} seconds)
    set_tests_properties(${name} PROPERTIES COST ${seconds})
  endif()
endfunction()
