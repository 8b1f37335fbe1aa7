#Writes OUTPUT, a header with the commit of SOURCE and whether its files differ from it; \
    run on every build, so
#that a result never names a commit that it was not made from.The header changes only when one of them does.
set(commit "unknown") set(dirty "unknown") find_package(Git QUIET) if (GIT_FOUND)
    execute_process(COMMAND ${GIT_EXECUTABLE} rev -
                    parse HEAD WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE head RESULT_VARIABLE failed
                        ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE) if (NOT failed) set(commit ${head})
        execute_process(COMMAND ${GIT_EXECUTABLE} status-- porcelain-- untracked -
                            files = no WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE changes
                            ERROR_QUIET) if (changes STREQUAL "") set(dirty "no") else() set(dirty "yes")
            endif() endif() endif() set(text
                                        "#pragma once\n\nnamespace moelab {\ninline constexpr const char* "
                                        "kGitCommit = \"${commit}\";\n")
                string(APPEND text
                       "inline constexpr const char* kGitDirty = \"${dirty}\";\n}  // namespace "
                       "moelab\n") if (EXISTS ${OUTPUT}) file(READ ${OUTPUT} old)
                    endif() if (NOT text STREQUAL old) file(WRITE $ { OUTPUT } "${text}") endif()
