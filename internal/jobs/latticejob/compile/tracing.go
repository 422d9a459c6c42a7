package compile

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// TracingPolicyKind is the kind of the policies, and tracingVersion their apiVersion.
const (
	TracingPolicyKind = "TracingPolicyNamespaced"
	tracingVersion    = "cilium.io/v1alpha1"
)

// TracingPoliciesIn names the kind of the policies, in the namespace.
func TracingPoliciesIn(namespace string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": tracingVersion, "kind": TracingPolicyKind}}
	o.SetNamespace(namespace)
	return o
}

// anyBinary allows all binaries.
const anyBinary = "*"

// tracing compiles the policy that kills binaries which none of the task's containers may run. If the
// command of a container is unknown, there is no policy for the pod.
func (t *task) tracing() error {
	binaries, known := binariesOf(t.spec)
	if !known {
		return nil
	}
	if t.training != nil {
		binaries[shell] = true // the containers' commands read their rank with it
	}
	var values []any
	for binary := range inOrder(binaries) {
		values = append(values, binary)
	}
	t.addOf(TracingPolicies, !t.facts.NeedTracing,
		t.unstructured(tracingVersion, TracingPolicyKind, "allow-binaries-"+t.full, map[string]any{
			"podSelector": map[string]any{"matchLabels": map[string]any{lattice.NameLabel: t.full}},
			"kprobes": []any{map[string]any{
				"call":    "security_bprm_check",
				"syscall": false,
				"args":    []any{map[string]any{"index": int64(0), "type": "linux_binprm"}},
				"selectors": []any{map[string]any{
					"matchArgs":    []any{map[string]any{"index": int64(0), "operator": "NotEqual", "values": values}},
					"matchActions": []any{map[string]any{"action": "Sigkill"}},
				}},
			}},
		}))
	return nil
}

// binariesOf returns what the task's containers may run: what their security lists, their commands, and the commands of
// their probes. known is false if a container may run any, or has neither a list nor a command of its own.
func binariesOf(task *lattice.JobTaskSpec) (binaries map[string]bool, known bool) {
	binaries, known = map[string]bool{}, true
	take := func(c *lattice.SidecarContainer) {
		var allowed []string
		if c.Security != nil {
			allowed = c.Security.AllowedBinaries
		}
		known = known && (len(c.Command) > 0 || len(allowed) > 0) && !slices.Contains(allowed, anyBinary)
		for _, binary := range allowed {
			binaries[binary] = true
		}
		if len(c.Command) > 0 {
			binaries[c.Command[0]] = true
		}
		for _, p := range []*lattice.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if p != nil && p.Exec != nil && len(p.Exec.Command) > 0 {
				binaries[p.Exec.Command[0]] = true
			}
		}
	}
	for _, c := range task.Workload.Containers {
		take(&c.SidecarContainer)
	}
	for _, c := range task.Sidecars {
		take(&c.SidecarContainer)
	}
	return binaries, known
}
