package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// FuzzParse looks for texts that make the parser panic, or that it accepts but rejects with all defaults filled in.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "- a", "1: 2", header, header + "waitForPodsReady: [1]",
		header + "resources: {transformations: [null, {input: [a]}]}",
		header + "fairSharing: {enable: {}, preemptionStrategies: [null]}",
		header + "objectRetentionPolicies: {workloads: 1}", header + "a: &a {<<: *a}",
		header + "waitForPodsReady: {blockAdmission: [true], requeuingStrategy: 1e400}",
		header + "admissionFairSharing: {resourceWeights: {1: 2}}\nqueueStatus: {interval: 999999h}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, problems := parse([]byte(text))
		if problems != nil {
			return
		}
		whole, err := yaml.Marshal(c)
		if err != nil {
			t.Fatalf("%q is accepted but cannot be printed: %v", text, err)
		}
		again, problems := parse(whole)
		if problems != nil {
			t.Fatalf("%q is accepted, but rejected with its defaults: %q", text, problems)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Errorf("%q changes when it is printed and read again:\n%s", text, diff)
		}
	})
}
