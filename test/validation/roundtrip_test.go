package validation

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

// The documents' manifests are taken as they are, with no field unknown, and taken again without a change.
func TestDocumentedManifestsAreAppliedUnmodified(t *testing.T) {
	server := newServer(t)
	cluster := testcluster.Get(t)
	for _, name := range []string{"team-a", "batch", "ml"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := cluster.Client.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for file, kind := range map[string]string{
		"../../examples/jobset/jobset-pytorch.yaml":        "JobSet",
		"../../examples/workload/workload-sample-job.yaml": "Workload",
		"../../examples/latticejob/data-pipeline.yaml":     "LatticeJob",
		"../../examples/latticejob/llm-finetune.yaml":      "LatticeJob",
	} {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{Object: fromYAML(string(text)).(map[string]any)}
			body, err := json.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			namespace := object.GetNamespace()
			if namespace == "" {
				namespace = server.namespace
			}
			resource := server.clientFor(t, "").Resource(kinds[kind].resource).Namespace(namespace)
			options := metav1.PatchOptions{FieldManager: "somebody", FieldValidation: metav1.FieldValidationStrict}
			first, err := resource.Patch(t.Context(), object.GetName(), types.ApplyPatchType, body, options)
			if err != nil {
				t.Fatal(err)
			}
			second, err := resource.Patch(t.Context(), object.GetName(), types.ApplyPatchType, body, options)
			if err != nil {
				t.Fatal(err)
			}
			if first.GetResourceVersion() != second.GetResourceVersion() {
				t.Error("applying it a second time changed it")
			}
		})
	}
}

// A client with Go types reads what people have written and writes back all of it, in its own form.
func TestClientsWithGoTypesMayUpdateUsersObjects(t *testing.T) {
	server := newServer(t)
	cluster := testcluster.Get(t)
	full := edits{
		leader + "template>metadata": "yaml:{labels: {a: b}}",
		podTemplate + "metadata":     "yaml:{annotations: {a: b}}",
		podTemplate + "spec": `yaml:{containers: [{name: c, image: i, command: [sleep], env: [{name: A, value: b}], ports: [{containerPort: 80}],
			resources: {limits: {nvidia.com/gpu: "1"}}, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, emptyDir: {}}],
			initContainers: [{name: i, image: i}], terminationGracePeriodSeconds: 0, securityContext: {runAsNonRoot: true}}`,
		"spec>volumeClaimPolicies>0>templates":                            times(1, claim),
		workers + "template>spec>template>spec>containers>0>volumeMounts": "yaml:[{name: v0, mountPath: /v}]",
	}
	stored := server.store(t, server.resource(t, "JobSet", ""), server.plain(t, "JobSet"), full)
	var typed jobset.JobSet
	if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(stored), &typed); err != nil {
		t.Fatal(err)
	}
	yes := true
	typed.Spec.Suspend = &yes
	typed.Labels = map[string]string{"touched": "yes"}
	if err := cluster.Client.Update(t.Context(), &typed); err != nil {
		t.Errorf("suspending: %v", err)
	}
	typed.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.NodeSelector = map[string]string{"a": "b"}
	typed.Spec.Suspend = nil
	if err := cluster.Client.Update(t.Context(), &typed); err != nil {
		t.Errorf("resuming with a node selector: %v", err)
	}
}

// The bounds that keep rules affordable on paper keep them affordable in fact: the largest objects are taken, and taken
// again when they change.
func TestTheLargestObjectsStayWithinTheBudgetOfTheRules(t *testing.T) {
	server := newServer(t)
	t.Run("a JobSet of 128 replicated jobs", func(t *testing.T) {
		jobs := times(128, "{name: w%d, template: {metadata: {labels: {a: b}}, spec: {parallelism: 2, completions: 2, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, command: [a, b], env: [{name: A, value: b}], resources: {requests: {cpu: 1}}}, {name: d, image: i}], nodeSelector: {a: b}, tolerations: [{key: a, operator: Exists}]}}}}}")
		for i := range jobs[1:] {
			jobs[i+1].(map[string]any)["dependsOn"] = times(min(i+1, 5), "{name: w%d, status: Ready}")
		}
		attempt := attempt{before: edits{"spec>replicatedJobs": jobs, "spec>coordinator": "yaml:{replicatedJob: w127}"},
			change: suspended}
		if err := server.try(t, "JobSet", attempt); err != nil {
			t.Error(err)
		}
	})
	t.Run("a Workload of 64 pod sets that holds quota", func(t *testing.T) {
		attempt := attempt{
			before: edits{
				"spec>podSets": times(64,
					"{name: s%d, count: 4, minCount: 2, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1, memory: 1Gi}}}, {name: d, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}}"),
				"status>conditions": "yaml:[" + condition("QuotaReserved", "True") + ", " +
					condition("Admitted", "True") + "]",
				"status>reclaimablePods": times(64, "{name: s%d, count: 1}"),
				"status>admission": map[string]any{"clusterQueue": "cq",
					"podSetAssignments": times(64, "{name: s%d, count: 4, flavors: {cpu: f, memory: f}, resourceUsage: {cpu: 8, memory: 8Gi}}")},
			},
			change: edits{
				"status>admission>podSetAssignments>63": "yaml:{name: s63, count: 2, flavors: {cpu: f, memory: f}, resourceUsage: {cpu: 4, memory: 4Gi}}"},
			user: operator,
		}
		if err := server.try(t, "Workload", attempt); err != nil {
			t.Error(err)
		}
		attempt.change, attempt.user = edits{"spec>active": false}, ""
		if err := server.try(t, "Workload", attempt); err != nil {
			t.Error(err)
		}
	})
}

func TestShortNamesColumnsAndFieldSelectors(t *testing.T) {
	server := newServer(t)
	cluster := testcluster.Get(t)
	got := map[string][]string{}
	for _, definition := range readAll[apiextensionsv1.CustomResourceDefinition](t, "muster/apis/*.yaml") {
		got[definition.Spec.Names.Kind] = definition.Spec.Names.ShortNames
	}
	want := map[string][]string{
		"AdmissionCheck": {"ac"}, "ClusterQueue": {"cq"}, "Cohort": {"co"}, "JobSet": nil, "GenericJob": nil,
		"LatticeJob": {"lj"}, "LocalQueue": {"queue", "queues", "lq"},
		"Job": {"vcjob", "vj"}, "Command": nil, "Queue": {"q", "queue-v1beta1"},
		"ResourceFlavor": {"flavor", "flavors", "rf"}, "Topology": {"topo"}, "TrainingJob": nil,
		"Workload":              {"kwl", "kueueworkload", "kueueworkloads"},
		"WorkloadPriorityClass": {"wpc"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("short names (-want +got):\n%s", diff)
	}
	columns := func(plural string) []string {
		t.Helper()
		var table metav1.Table
		config := rest.CopyConfig(cluster.Config)
		config.GroupVersion, config.APIPath = &kueue.GroupVersion, "/apis"
		config.NegotiatedSerializer = serializer.NewCodecFactory(testcluster.Scheme()).WithoutConversion()
		rests, err := rest.RESTClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		body, err := rests.Get().Resource(plural).SetHeader("Accept",
			"application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(body, &table); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, column := range table.ColumnDefinitions {
			if column.Priority == 0 {
				names = append(names, column.Name)
			}
		}
		return names
	}
	if diff := cmp.Diff([]string{"Name", "Queue", "Reserved in", "Admitted", "Finished", "Age"},
		columns("workloads")); diff != "" {
		t.Errorf("columns of workloads (-want +got):\n%s", diff)
	}
	for _, queue := range []string{"one", "two"} {
		change := edits{"status>admission": map[string]any{"clusterQueue": queue,
			"podSetAssignments": times(1, "{name: main}")}}
		server.store(t, server.resource(t, "Workload", ""), server.plain(t, "Workload"), change)
	}
	var workloads kueue.WorkloadList
	err := cluster.Client.List(t.Context(), &workloads, client.InNamespace(server.namespace),
		client.MatchingFields{"status.admission.clusterQueue": "two"})
	if err != nil || len(workloads.Items) != 1 {
		t.Errorf("workloads of ClusterQueue two: %d and %v, want 1", len(workloads.Items), err)
	}
}
