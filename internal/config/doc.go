// Package config reads the operator's configuration file: api/config has its types, this package fills in what is absent
// and refuses what is wrong, all of it at once, naming each field and what to do.
//
// Only cmd/muster-operator calls it, before anything else is started. It knows files and values, and nothing of what the
// options do: that is explained in docs/configuration.md.
package config
