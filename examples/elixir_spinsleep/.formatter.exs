[
  inputs: ["{mix,.formatter}.exs", "lib/**/*.ex", "test/**/*.{ex,exs}"],
  line_length: 98,
  import_deps: [:fairnif, :fairnif_lab]
]
