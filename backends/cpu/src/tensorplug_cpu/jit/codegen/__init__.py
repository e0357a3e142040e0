"""What writes LLVM code: functions, their instructions, and expressions as instructions."""
