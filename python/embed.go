// Package python has the add-on for Python programs, which muster-agent carries and lays
// beside itself in pods: the package muster, and auto, what Python runs as it starts.
package python

import "embed"

// Files are folders as they are laid beside the agent.
//
//go:embed muster/*.py auto/*.py
var Files embed.FS
