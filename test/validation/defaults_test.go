package validation

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/musterhq/muster/internal/testcluster"
)

func TestDefaultsAreThoseOfThePublicAPIs(t *testing.T) {
	tests := []struct {
		what, kind string
		change     edits
		path       []string
		want       string
	}{
		{"a JobSet without network", "JobSet", nil, []string{"spec", "network"},
			"{enableDNSHostnames: true, publishNotReadyAddresses: true}"},
		{"a JobSet with a part of network", "JobSet", edits{"spec>network": "yaml:{enableDNSHostnames: false, subdomain: s}"},
			[]string{"spec", "network"}, "{enableDNSHostnames: false, publishNotReadyAddresses: true, subdomain: s}"},
		{"a JobSet without successPolicy", "JobSet", nil, []string{"spec", "successPolicy"}, "{operator: All}"},
		{"a JobSet without startupPolicy", "JobSet", nil, []string{"spec", "startupPolicy"},
			"{startupPolicyOrder: AnyOrder}"},
		{"a JobSet without failurePolicy", "JobSet", nil, []string{"spec", "failurePolicy"}, "null"},
		{"a JobSet with an empty failurePolicy", "JobSet", edits{"spec>failurePolicy": map[string]any{}},
			[]string{"spec", "failurePolicy"}, "{restartStrategy: Recreate}"},
		{"a volume claim policy", "JobSet", edits{"spec>volumeClaimPolicies": "yaml:[{}]"},
			[]string{"spec", "volumeClaimPolicies"}, "[{retentionPolicy: {whenDeleted: Delete}}]"},
		{"a replicated job", "JobSet", edits{"spec>replicatedJobs": "yaml:[{name: a, template: {spec: {template: {spec: {containers: [{name: c, ports: [{containerPort: 80}]}]}}}}}]"}, []string{"spec", "replicatedJobs"}, `
- name: a
  groupName: default
  replicas: 1
  template:
    spec:
      completionMode: Indexed
      template:
        spec:
          restartPolicy: OnFailure
          containers: [{name: c, resources: {}, ports: [{containerPort: 80, protocol: TCP}]}]
`},
		{"a replicated job that says all of it", "JobSet",
			edits{"spec>replicatedJobs": "yaml:[{name: a, groupName: g, replicas: 0, template: {spec: {completionMode: NonIndexed, template: {spec: {restartPolicy: Never, containers: [{name: c, resources: {}}]}}}}}]"},
			[]string{"spec", "replicatedJobs"},
			"[{name: a, groupName: g, replicas: 0, template: {spec: {completionMode: NonIndexed, template: {spec: {restartPolicy: Never, containers: [{name: c, resources: {}}]}}}}}]"},
		{"a Workload", "Workload", nil, []string{"spec", "active"}, "true"},
		{"a GenericJob without cleanUpPolicy", "GenericJob", nil, []string{"spec", "cleanUpPolicy"}, "None"},
		{"a GenericJob without runMode", "GenericJob", nil, []string{"spec", "runMode"}, "null"},
		{"a GenericJob's replicas", "GenericJob",
			edits{"spec>replicaSpecs": "yaml:[{type: a, template: {spec: {containers: [{name: c}]}}}]"},
			[]string{"spec", "replicaSpecs"}, "[{type: a, replicas: 1, restartPolicy: {policy: OnFailure, limit: 0}, template: {spec: {containers: [{name: c, resources: {}}]}}}]"},
		{"a t9kScheduler section", "GenericJob", edits{"spec>scheduler": "yaml:{t9kScheduler: {queue: q}}"},
			[]string{"spec", "scheduler"}, "{t9kScheduler: {queue: q, priority: 0}}"},
		{"a type in debug mode", "GenericJob",
			edits{"spec>runMode": "yaml:{debug: {enabled: true, replicaSpecs: [{type: worker}]}}"}, []string{"spec", "runMode"},
			"{debug: {enabled: true, replicaSpecs: [{type: worker, command: [sleep, inf]}]}}"},
		{"a port of a GenericJob", "GenericJob", edits{"spec>service": "yaml:{ports: [{port: 80}]}"},
			[]string{"spec", "service"}, "{ports: [{port: 80, protocol: TCP}]}"},
		{"a TrainingJob's run policy", "TrainingJob", nil, []string{"spec", "runPolicy"}, "{cleanPodPolicy: All}"},
		{"a TrainingJob without framework", "TrainingJob", nil, []string{"spec", "framework"}, "pytorch"},
		{"a TrainingJob without priority", "TrainingJob", nil, []string{"spec", "priority"}, "0"},
		{"a TrainingJob without sizes", "TrainingJob", edits{"spec>minSize": nil, "spec>maxSize": nil},
			[]string{"spec", "maxSize"}, "null"},
		{"a TrainingJob's workers", "TrainingJob", nil, []string{"spec", "replicaSpecs"},
			"{replicas: 1, restartPolicy: Never, template: {spec: {containers: [{name: c, image: i, resources: {}}]}}}"},
		{"a pod set without name and count", "Workload",
			edits{"spec>podSets": "yaml:[{template: {spec: {containers: [{name: c}]}}}]"}, []string{"spec", "podSets"},
			"[{name: main, count: 1, template: {spec: {containers: [{name: c, resources: {}}]}}}]"},
		{"a ClusterQueue without preemption", "ClusterQueue", nil, []string{"spec", "preemption"},
			"{reclaimWithinCohort: Never, withinClusterQueue: Never, borrowWithinCohort: {policy: Never}}"},
		{"a ClusterQueue without flavorFungibility", "ClusterQueue", nil, []string{"spec", "flavorFungibility"},
			"{whenCanBorrow: Borrow, whenCanPreempt: TryNextFlavor}"},
		{"a ClusterQueue without queueingStrategy", "ClusterQueue", nil, []string{"spec", "queueingStrategy"},
			"BestEffortFIFO"},
		{"a ClusterQueue without stopPolicy", "ClusterQueue", nil, []string{"spec", "stopPolicy"}, "None"},
		{"a ClusterQueue without namespaceSelector", "ClusterQueue", nil, []string{"spec", "namespaceSelector"}, "null"},
		{"fair sharing without weight", "ClusterQueue", edits{"spec>fairSharing": map[string]any{}},
			[]string{"spec", "fairSharing"}, "{weight: 1}"},
		{"a LocalQueue without stopPolicy", "LocalQueue", nil, []string{"spec", "stopPolicy"}, "None"},
		{"an AdmissionCheck without retryDelayMinutes", "AdmissionCheck", nil, []string{"spec", "retryDelayMinutes"}, "15"},
	}
	server := newServer(t)
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			object := server.plain(t, test.kind)
			test.change.apply(object.Object)
			options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
			made, err := server.resource(t, test.kind, "").Create(t.Context(), object, options)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := unstructured.NestedFieldNoCopy(made.Object, test.path...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fromYAML(test.want), plain(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestQueuedJobsAreHeld: a Job with a queue is suspended when it is created, unless Muster creates it, as it does for
// JobSets. Names, labels and owner references, which every user can set, do not exempt it.
func TestQueuedJobsAreHeld(t *testing.T) {
	const ofJobSet = "yaml:[{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: js, uid: u, controller: true}]"
	queued := edits{"spec>managedBy": nil, "metadata>labels": "yaml:{kueue.x-k8s.io/queue-name: q}"}
	ofTheSet :=
		queued.with(edits{"metadata>labels": "yaml:{kueue.x-k8s.io/queue-name: q, jobset.sigs.k8s.io/jobset-name: js}",
			"metadata>ownerReferences": ofJobSet})
	server := newServer(t)
	for what, test := range map[string]struct {
		change edits
		user   string
		held   bool
	}{
		"a Job": {queued, "", true},
		"by the annotation": {edits{"spec>managedBy": nil,
			"metadata>annotations": "yaml:{kueue.x-k8s.io/queue-name: q}"}, "", true},
		"of a JobSet, by the operator":    {ofTheSet.with(edits{"metadata>name": "js-workers-0"}), operator, false},
		"of a JobSet, by a user":          {ofTheSet.with(edits{"metadata>name": "js-workers-0"}), "", true},
		"of a JobSet, by its owner alone": {queued.with(edits{"metadata>ownerReferences": ofJobSet}), "", true},
		"of a JobSet, under another name": {ofTheSet.with(edits{"metadata>name": "job"}), "", true},
		"of a JobSet, with no name so far": {ofTheSet.with(edits{"metadata>name": nil,
			"metadata>generateName": "js-workers-"}), "", true},
		"of another kind": {ofTheSet.with(edits{"metadata>name": "js-workers-0", "metadata>ownerReferences>0>kind": "Other"}),
			"", true},
	} {
		t.Run(what, func(t *testing.T) {
			object := server.plain(t, "Job")
			test.change.apply(object.Object)
			made, err := server.resource(t, "Job", test.user).Create(t.Context(), object,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				t.Fatal(err)
			}
			if held, _, err := unstructured.NestedBool(made.Object, "spec", "suspend"); err != nil || held != test.held {
				t.Errorf("it is suspended: %t (error %v), want %t", held, err, test.held)
			}
		})
	}
}

// TestStatusCountsArePresentWhenZero: clients of the public APIs find them in each status. A patch that first says that
// there are none would change nothing, and so not say it.
func TestStatusCountsArePresentWhenZero(t *testing.T) {
	found := map[string]bool{}
	for _, definition := range readAll[apiextensionsv1.CustomResourceDefinition](t, "muster/apis/*.yaml") {
		for _, version := range definition.Spec.Versions {
			kind := schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name,
				Kind: definition.Spec.Names.Kind}
			object, err := testcluster.Scheme().New(kind)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			var empty struct{ Status map[string]any }
			if err := json.Unmarshal(text, &empty); err != nil {
				t.Fatal(err)
			}
			for name, value := range empty.Status {
				if value != float64(0) {
					continue
				}
				found[kind.Kind+" "+name] = true
				if got := version.Schema.OpenAPIV3Schema.Properties["status"].Properties[name].Default; got == nil ||
					string(got.Raw) != "0" {
					t.Errorf("status.%s of a %s is not there before it is something else than 0", name, kind.Kind)
				}
			}
		}
	}
	for _, name := range []string{"JobSet restarts", "ClusterQueue pendingWorkloads", "LocalQueue pendingWorkloads"} {
		if !found[name] {
			t.Errorf("%s was not looked at", name)
		}
	}
}
