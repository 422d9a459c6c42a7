// Package charts carries the Helm chart's definitions in the binary, so that the operator can install its own APIs where
// there is no Helm. Only internal/install and tests read it. It knows nothing of what the files say.
package charts

import "embed"

// Files holds the custom resource definitions, under muster/crds, and the admission policies, under muster/policies.
//
//go:embed muster/crds/*.yaml muster/policies/*.yaml
var Files embed.FS
