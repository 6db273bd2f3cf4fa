[
  inputs: ["{mix,.formatter}.exs", "lib/**/*.ex", "test/**/*.{ex,exs}"],
  import_deps: [:fairnif, :fairnif_check]
]
