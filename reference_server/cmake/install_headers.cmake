# Installs the public header, and below httpmark/detail the headers that it includes, each of which
# is then told where the others are.
#   SOURCE  this project's folder
#   PREFIX  where headers go
cmake_policy(VERSION 3.22)
set(waiting "include/httpmark/httpmark.hpp")
set(seen ${waiting})
while(waiting)
  list(POP_FRONT waiting header)
  file(READ "${SOURCE}/${header}" text)
  string(REGEX MATCHALL "#include \"[^\"]+\"" lines "${text}")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "#include \"([^\"]+)\"" "src/\\1" included "${line}")
    if(NOT included IN_LIST seen)
      list(APPEND seen "${included}")
      list(APPEND waiting "${included}")
    endif()
  endforeach()
  string(REGEX REPLACE "#include \"" "#include \"httpmark/detail/" text "${text}")
  string(REGEX REPLACE "^src/" "httpmark/detail/" place "${header}")
  string(REGEX REPLACE "^include/" "" place "${place}")
  file(WRITE "${PREFIX}/${place}.new" "${text}")
  # What has not changed is not compiled again by whoever uses it.
  file(COPY_FILE "${PREFIX}/${place}.new" "${PREFIX}/${place}" ONLY_IF_DIFFERENT)
  file(REMOVE "${PREFIX}/${place}.new")
endwhile()
