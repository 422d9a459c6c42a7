// Package python has the add-on for Python programs, which muster-agent carries and lays
// beside itself in pods.
package python

import "embed"

// Files are the package muster, as Python imports it from the folder they are laid in.
//
//go:embed muster/*.py
var Files embed.FS
