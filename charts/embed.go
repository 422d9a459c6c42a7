// Package charts embeds the Helm chart's CRDs, policies and roles, so that the operator can install its own APIs
// without Helm. Only internal/install and tests use it. It knows nothing of their contents.
package charts

import "embed"

// The roles are generated from the markers beside the code that needs the rights.
//
//go:generate go tool -modfile=../tools/go.mod controller-gen rbac:roleName=muster-operator,fileName=operator.yaml,headerFile=rights-header.txt paths=../internal/... paths=../cmd/muster-operator/... output:rbac:dir=muster/rights

// Files has the CRDs, under muster/apis, the admission policies, under muster/policies, the roles of the operator,
// under muster/rights, and what users may do, under muster/users.
//
//go:embed muster/apis/*.yaml muster/policies/*.yaml muster/rights/*.yaml muster/users/*.yaml
var Files embed.FS
