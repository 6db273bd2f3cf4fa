[
  inputs: ["{mix,.formatter}.exs", "test/**/*.exs"],
  line_length: 98
]
