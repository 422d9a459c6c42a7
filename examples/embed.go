// Package examples carries the manifests of this folder, so that `muster demo` can run them from anywhere. Each of them
// is applied unmodified. Only the demo and tests may import it.
package examples

import "embed"

// Files holds every manifest as <folder>/<name>.yaml. The folder `prerequisites` comes before the others.
//
//go:embed */*.yaml
var Files embed.FS
