# `cmake --install build --prefix WHERE`: the programs, which find each other in their common folder whatever the prefix,
# libfakenvml.so, what Prometheus and Grafana read, the documentation, and what shells and man read, printed by the
# program itself.
include(GNUInstallDirs)

install(TARGETS muster muster-sampler muster-null-server RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(MUSTER_ENGINE)
  install(TARGETS muster-worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS fakenvml LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(share ${CMAKE_INSTALL_DATADIR}/muster)
install(DIRECTORY packaging/prometheus packaging/grafana DESTINATION ${share}
        FILES_MATCHING PATTERN "*.yml" PATTERN "*.json" PATTERN "*.rules.test.yml" EXCLUDE)
install(FILES packaging/Dockerfile packaging/compose.yml data/models.json data/sample_texts.txt DESTINATION ${share})
install(DIRECTORY tests/fake_machines DESTINATION ${share})
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR})

# install_printed(FOLDER NAME WORDS...): what `muster WORDS` prints, at the time of the installation, so that a build of
# the programs alone is enough.
function(install_printed folder name)
  install(CODE "
    set(printed \"${PROJECT_BINARY_DIR}/printed/${name}\")
    file(MAKE_DIRECTORY \"${PROJECT_BINARY_DIR}/printed\")
    execute_process(COMMAND \"$<TARGET_FILE:muster>\" ${ARGN} OUTPUT_FILE \"\${printed}\"
                    WORKING_DIRECTORY \"${PROJECT_BINARY_DIR}\" COMMAND_ERROR_IS_FATAL ANY)
    file(INSTALL \"\${printed}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${folder}\")")
endfunction()
install_printed(${CMAKE_INSTALL_DATADIR}/bash-completion/completions muster completion bash)
install_printed(${CMAKE_INSTALL_DATADIR}/zsh/site-functions _muster completion zsh)
install_printed(${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d muster.fish completion fish)
install_printed(${CMAKE_INSTALL_MANDIR}/man1 muster.1 manual)
