package validation

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// TestObjectsFromBeforeABoundExisted: an object that a newer bound would refuse is stored while the bounds of its kind
// are lifted. When they hold again, its labels and its status can still be written, its spec changed where it keeps to
// them, and its finalizers removed, so that it goes.
func TestObjectsFromBeforeABoundExisted(t *testing.T) {
	for _, of := range []struct {
		kind        string
		bad, change edits
	}{
		{"LatticeJob", manyContainers(33, 32), edits{"spec>queue": "q"}},
		{"GenericJob", manyIndices(9), edits{"spec>ttlSecondsAfterFinished": 9}},
		{"Queue", edits{"spec>capability": manyAmounts(257)}, edits{"spec>weight": 2}},
		{"Workload", edits{podSet + "template>metadata": map[string]any{"labels": manyLabels(4097)}},
			edits{"spec>queueName": "r"}},
		{"VCJob", manyPolicies(9, 57), edits{"spec>ttlSecondsAfterFinished": 9}},
		{"TrainingJob", edits{"spec>replicaSpecs>template>spec>containers>0>resources": "yaml:{requests: {memory: '1e30'}}"},
			edits{"spec>minSize": 1}},
		{"ClusterQueue", edits{quota + "nominalQuota": "1e30"}, edits{"spec>stopPolicy": "Hold"}},
		{"Cohort", edits{quota + "nominalQuota": "1e30"}, edits{"spec>parentName": "p"}},
		{"JobSet", edits{"spec>replicatedJobs": times(129, plainJob)}, edits{"spec>suspend": true}},
	} {
		t.Run(of.kind, func(t *testing.T) {
			server := newServer(t)
			resource := server.resource(t, of.kind, "")
			object := server.plain(t, of.kind)
			of.bad.apply(object.Object)
			object.SetFinalizers([]string{"example.com/waits"})
			restore := liftBounds(t, server, kinds[of.kind])
			defer restore()
			until(t, "the object is accepted", func() bool {
				_, err := resource.Create(t.Context(), object, metav1.CreateOptions{})
				return err == nil
			})
			restore()
			other := object.DeepCopy()
			other.SetName(object.GetName() + "-other")
			until(t, "the bounds hold again", func() bool {
				_, err := resource.Create(t.Context(), other, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				return errors.IsInvalid(err)
			})
			for what, change := range map[string]edits{"labels": {"metadata>labels": map[string]any{"a": "b"}},
				"status": statusTouches[of.kind], "spec": of.change} {
				stored, err := resource.Get(t.Context(), object.GetName(), metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				change.apply(stored.Object)
				if change.touchesStatus() {
					_, err = resource.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{})
				} else {
					_, err = resource.Update(t.Context(), stored, metav1.UpdateOptions{})
				}
				if err != nil {
					t.Errorf("writing its %s: %v", what, err)
				}
			}
			if err := resource.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := resource.Patch(t.Context(), object.GetName(), types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
				t.Errorf("removing its finalizers: %v", err)
			}
			if _, err := resource.Get(t.Context(), object.GetName(), metav1.GetOptions{}); !errors.IsNotFound(err) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

// liftBounds takes the rules and bounds out of the definition of a kind, and the policies of the kind out of force. The
// function that it returns brings them back.
func liftBounds(t *testing.T, server *server, of kind) (restore func()) {
	t.Helper()
	client := server.clientFor(t, "")
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"})
	bindings := client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: "validatingadmissionpolicybindings"})
	policies, err := client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: "validatingadmissionpolicies"}).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	name := of.resource.Resource + "." + of.resource.Group
	var versions []any
	write := func(change func(*unstructured.Unstructured)) {
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			definition, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(definition)
			_, err = definitions.Update(t.Context(), definition, metav1.UpdateOptions{})
			return err
		}); err != nil {
			t.Fatalf("changing the definition %s: %v", name, err)
		}
	}
	write(func(definition *unstructured.Unstructured) {
		versions, _, _ = unstructured.NestedSlice(definition.Object, "spec", "versions")
		lifted, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		dropRules(lifted)
		dropBounds(lifted)
		_ = unstructured.SetNestedSlice(definition.Object, lifted, "spec", "versions")
	})
	var taken []*unstructured.Unstructured
	for _, policy := range policies.Items {
		rules, _, _ := unstructured.NestedSlice(policy.Object, "spec", "matchConstraints", "resourceRules")
		for _, rule := range rules {
			groups, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "apiGroups")
			if len(groups) != 1 || groups[0] != of.resource.Group {
				continue
			}
			binding, err := bindings.Get(t.Context(), policy.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := bindings.Delete(t.Context(), policy.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			binding.SetResourceVersion("")
			binding.SetUID("")
			taken = append(taken, binding)
			break
		}
	}
	restored := false
	return func() {
		if restored {
			return
		}
		restored = true
		write(func(definition *unstructured.Unstructured) {
			_ = unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions")
		})
		for _, binding := range taken {
			if _, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
				t.Fatalf("bringing %s back: %v", binding.GetName(), err)
			}
		}
	}
}

// dropBounds removes the bounds of lists, maps and texts from a schema.
func dropBounds(node any) {
	switch node := node.(type) {
	case map[string]any:
		for _, bound := range []string{"maxItems", "maxProperties", "maxLength"} {
			if _, isField := node[bound].(map[string]any); !isField {
				delete(node, bound)
			}
		}
		for _, child := range node {
			dropBounds(child)
		}
	case []any:
		for _, child := range node {
			dropBounds(child)
		}
	}
}

// until polls, since the API server says nowhere when a changed definition or policy is in force.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	const patience = 2 * time.Minute
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out after %s waiting until %s", patience, what)
		}
	}
}
