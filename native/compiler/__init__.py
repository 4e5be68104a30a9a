"""The compiler: a function of the language, and the kinds of its arguments, to LLVM's text."""
