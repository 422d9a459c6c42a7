package validation

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// labelled gives an object the label of a queue.
var labelled = edits{"metadata>labels": map[string]any{"kueue.x-k8s.io/queue-name": "team-a"}}

// unqueuedWarnings are about the label of a queue on what Muster does not queue; the page takes a Pod for all.
func unqueuedWarnings() []rule {
	controlled := func(controls bool) edits {
		return edits{"metadata>ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "app",
			"uid": "u", "controller": controls}}}
	}
	return []rule{{"Pod", "Muster queues objects of this kind", inUnqueued,
		"Muster does not queue objects of the kind Pod",
		[]attempt{
			{what: "the label", change: labelled},
			{what: "the label, later", before: edits{}, change: labelled},
			{what: "another queue", before: labelled, change: edits{"metadata>labels>kueue.x-k8s.io/queue-name": "team-b"}},
			{what: "an owner that does not control it", change: labelled.with(controlled(false))},
		},
		[]attempt{
			{what: "no label"},
			{what: "an empty label", change: edits{"metadata>labels": map[string]any{"kueue.x-k8s.io/queue-name": ""}}},
			{what: "a change of something else", before: labelled,
				change: edits{"metadata>annotations": map[string]any{"a": "b"}}},
			{what: "the label removed", before: labelled, change: edits{"metadata>labels": nil}},
			{what: "made by a controller", change: labelled.with(controlled(true))},
		}}}
}

// TestTheQueueLabelWarnsOnEveryKindThatIsNotQueued: kinds of Kubernetes and of others, without a list of them. Those
// that Muster queues, and those that run nothing, give no warning.
func TestTheQueueLabelWarnsOnEveryKindThatIsNotQueued(t *testing.T) {
	server := newServer(t)
	const pods = "{restartPolicy: %, containers: [{name: c, image: i}]}"
	pod := func(restart string) string { return strings.Replace(pods, "%", restart, 1) }
	set := "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: " + pod("Always") + "}"
	define(t, server, "ray.io", "v1", "RayCluster", "rayclusters")
	define(t, server, "leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")
	for what, tc := range map[string]struct {
		resource schema.GroupVersionResource
		object   string
		warns    bool
	}{
		"Deployment": {schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			"{apiVersion: apps/v1, kind: Deployment, spec: {" + set + "}}", true},
		"StatefulSet": {schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"},
			"{apiVersion: apps/v1, kind: StatefulSet, spec: {serviceName: s, " + set + "}}", true},
		"CronJob": {schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"},
			"{apiVersion: batch/v1, kind: CronJob, spec: {schedule: '@daily', jobTemplate: {spec: {template: {spec: " + pod("Never") + "}}}}}", true},
		"RayCluster": {schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"},
			"{apiVersion: ray.io/v1, kind: RayCluster}", true},
		"LeaderWorkerSet": {schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1",
			Resource: "leaderworkersets"}, "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet}", true},
		"ConfigMap": {schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			"{apiVersion: v1, kind: ConfigMap}", false},
		"Role": {schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}", false},
		"Job":         {kinds["Job"].resource, kinds["Job"].plain, false},
		"JobSet":      {kinds["JobSet"].resource, kinds["JobSet"].plain, false},
		"GenericJob":  {kinds["GenericJob"].resource, kinds["GenericJob"].plain, false},
		"VCJob":       {kinds["VCJob"].resource, kinds["VCJob"].plain, false},
		"LatticeJob":  {kinds["LatticeJob"].resource, kinds["LatticeJob"].plain, false},
		"TrainingJob": {kinds["TrainingJob"].resource, kinds["TrainingJob"].plain, false},
		"Workload":    {kinds["Workload"].resource, kinds["Workload"].plain, false},
	} {
		t.Run(what, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: labelled.apply(fromYAML(tc.object).(map[string]any))}
			object.SetName("labelled")
			object.SetNamespace(server.namespace)
			client := server.clientFor(t, "").Resource(tc.resource).Namespace(server.namespace)
			server.warnings.take()
			if _, err := client.Create(t.Context(), object,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Fatal(err)
			}
			warned := slices.ContainsFunc(server.warnings.take(), func(text string) bool {
				return strings.Contains(text, "Muster does not queue objects of the kind "+what)
			})
			if warned != tc.warns {
				t.Errorf("warned: %v, want %v", warned, tc.warns)
			}
		})
	}
}

// define makes a definition of a kind with any content, as defineAs does.
func define(t *testing.T, server *server, group, version, kind, plural string) {
	t.Helper()
	defineAs(t, server, group, kind, plural, "Namespaced", map[string]any{"name": version, "served": true, "storage": true,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
			"x-kubernetes-preserve-unknown-fields": true}}})
}

// defineAs makes a definition of a kind, as long as the test runs, and waits until it is served.
func defineAs(t *testing.T, server *server, group, kind, plural, scope string, version map[string]any) {
	t.Helper()
	client := server.clientFor(t, "").Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"})
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group,
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for a test"}},
		"spec": map[string]any{"group": group, "scope": scope, "names": map[string]any{"kind": kind, "plural": plural},
			"versions": []any{version}},
	}}
	if _, err := client.Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.WithoutCancel(t.Context()), definition.GetName(),
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	served := server.clientFor(t, "").Resource(schema.GroupVersionResource{Group: group, Version: version["name"].(string),
		Resource: plural})
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute,
		true, func(ctx context.Context) (bool, error) {
			_, err := served.List(ctx, metav1.ListOptions{})
			return err == nil, nil
		})
	if err != nil {
		t.Fatalf("%s is not served: %v", plural, err)
	}
}
