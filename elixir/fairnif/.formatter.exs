# What a project that depends on fairnif may import, so that `defnif exor(binary, byte)` keeps its
# form there: import_deps: [:fairnif]
locals_without_parens = [defnif: 1]

[
  inputs: ["{mix,.formatter}.exs", "lib/**/*.ex", "test/**/*.{ex,exs}"],
  line_length: 98,
  locals_without_parens: locals_without_parens,
  export: [locals_without_parens: locals_without_parens]
]
