# ctest -j starts tests in the order of their COST, so that the longest one is not alone at the end. Seconds in a run of
# two at once on two cores; a test that is not named here takes less than 25.
set(muster_long_tests
  embed_equality 140  command_line 83  jobs 78  planner 44  coordinator 37  engine 36  prometheus.rules 36
  embed_server 34  embed_kill 25  documents.promises 25)

function(muster_start_early name)
  list(FIND muster_long_tests ${name} at)
  if(at GREATER_EQUAL 0)
    math(EXPR at "${at} + 1")
    list(GET muster_long_tests ${at} seconds)
    set_tests_properties(${name} PROPERTIES COST ${seconds})
  endif()
endfunction()
