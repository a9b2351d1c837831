# Prints why a stage of `./run test` failed: of each failed test up to 60 lines, without the tests
# within it that passed; at most 200 lines. If no test failed, the end of the stage. Logs are long,
# and a reader often has only the end.

function print_line(line) {
  if (++lines > 60 || ++all > 200) return
  print substr(line, 1, 400)
  found = 1
}

# Prints the test within a test that is held back, at most its last 40 lines.
function let_go(   i) {
  for (i = held > 40 ? held - 40 : 0; i < held; ++i) print_line(hold[i % 40])
  held = 0
}

{ last[NR % 40] = $0 }
/^ *[0-9]+\/[0-9]+ Test +#/ {
  let_go() # ended by a signal or by the time limit
  failed = /\*\*\*/ && !/\*\*\*Skipped/
  lines = 0
}
/^ +Start +[0-9]+:/ {
  let_go()
  failed = 0
}
!failed { next }
/^\[ RUN      \]/ { let_go(); hold[held++ % 40] = $0; next }
/^\[       OK \]/ || /^\[  SKIPPED \]/ { held = 0; next }
held { hold[held++ % 40] = $0 }
!held { print_line($0) }
/^\[  FAILED  \]/ { let_go() }
END {
  let_go()
  for (i = NR - 39; !found && i <= NR; ++i) if (i > 0) print last[i % 40]
}
