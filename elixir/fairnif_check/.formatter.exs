locals_without_parens = [test_well_behaved: 2, test_well_behaved: 3]

[
  inputs: ["{mix,.formatter}.exs", "lib/**/*.ex", "test/**/*.{ex,exs}"],
  line_length: 98,
  locals_without_parens: locals_without_parens,
  export: [locals_without_parens: locals_without_parens]
]
