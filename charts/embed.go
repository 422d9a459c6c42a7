// Package charts carries the Helm chart's definitions, policies and rights in the binary, so that the operator can install its
// own APIs where there is no Helm. Only internal/install and tests read it. It knows nothing of what the files say.
package charts

import "embed"

// The rights are those that the markers ask for which stand beside the code that needs them.
//
//go:generate go tool -modfile=../tools/go.mod controller-gen rbac:roleName=muster-operator,fileName=operator.yaml,headerFile=rights-header.txt paths=../internal/... paths=../cmd/muster-operator/... output:rbac:dir=muster/rights

// Files holds the custom resource definitions, under muster/apis, the admission policies, under muster/policies, and the roles of
// the operator, under muster/rights.
//
//go:embed muster/apis/*.yaml muster/policies/*.yaml muster/rights/*.yaml
var Files embed.FS
