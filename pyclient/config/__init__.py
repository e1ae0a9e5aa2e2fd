"""Options: one row per option, which validates the values and generates the reference page.

- `definition`: `ConfigKey`, `ConfigDefinition`: parsing and validation; the broker uses it, too
- `common`: the options of all clients; `tls` and `metrics` are parts of them
- `producer`, `consumer`, `admin`: the options of each client, and the rules between them
- `plugins`: creates objects that an option names
- `properties`: reads files like Java's; the broker uses it, too
- `reference`: generates docs/configuration.md; `option_types`: generates `options`, their types
"""
