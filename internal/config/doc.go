// Package config reads the operator's configuration file, whose types are in api/config: it sets defaults for absent
// fields and refuses invalid files, reporting all problems at once, each with its field and how to fix it.
//
// Only cmd/muster-operator loads a file, before anything else is started. The package knows files and values, but
// nothing of what the options do: that is explained in docs/reference/configuration.md.
package config
