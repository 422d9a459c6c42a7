package validation

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
)

var (
	costRuns = flag.Int("cost.runs", 0, "how often TestWorstObjects sends each object; 0 skips it, 5 take some 30 minutes")
	costOnly = flag.String("cost.only", "", "measure only the objects whose API and description match this expression")
)

// mostCost is the CPU time that Muster's rules may cost the API server for one write. More is a denial of service.
const mostCost = 50 * time.Millisecond

// TestWorstObjects prints, for the most expensive objects of each API, the CPU time of the control plane for a dry run
// of their creation and, where they are accepted, of an update of their spec and of their status. Beside it are a plain
// object of the same size, which has one long text, and the same object as one of a kind of the same schema for which
// no rule holds: most of what an object costs beyond its text is Kubernetes' own, for its schema and the fields that
// each client manages.
func TestWorstObjects(t *testing.T) {
	if *costRuns == 0 {
		t.Skip("measured by hand: go test ./test/validation -run TestWorstObjects -v -args -cost.runs=5")
	}
	server := newServer(t)
	bare := bareKinds(t, server)
	process := figure.ProcessOf(t, filepath.Join(testcluster.Get(t).Dir, "pid"))
	only := regexp.MustCompile(*costOnly)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "API\tobject\twrite\tKiB\tCPU ms\tplain\twithout rules\tabove plain\tabove no rules\tanswer\t")
	ms := func(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d)/float64(time.Millisecond)) }
	for _, worst := range worstObjects() {
		if !only.MatchString(worst.kind + ", " + worst.what) {
			continue
		}
		object := server.plain(t, worst.kind)
		worst.change.apply(object.Object)
		size := sizeOf(t, object)
		padded := server.plain(t, worst.kind)
		pad(padded, worst.kind, size-sizeOf(t, padded))
		ours, naked := server.resource(t, worst.kind, ""), bareObject(object, bare[worst.kind], worst.kind)
		row := func(write string, call func(*testing.T, dynamic.ResourceInterface, *unstructured.Unstructured) func() error) {
			t.Run(worst.kind+", "+worst.what+", "+write, func(t *testing.T) {
				calls := map[string]func() error{"worst": call(t, ours, object), "plain": call(t, ours, padded),
					"bare": call(t, bare[worst.kind].resource, naked)}
				answer := reasonOf(calls["worst"]())
				cost := measure(t, process, calls)
				above := cost["worst"] - cost["bare"]
				fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", worst.kind, worst.what, write, size>>10,
					ms(cost["worst"]), ms(cost["plain"]), ms(cost["bare"]), ms(cost["worst"]-cost["plain"]), ms(above), answer)
				if above > mostCost {
					t.Errorf("Muster's rules cost %v, want at most %v", above, mostCost)
				}
			})
		}
		row("create", create)
		if create(t, ours, object)() != nil {
			continue
		}
		if touch, ok := touches[worst.kind]; ok {
			row("update", touch.update)
		}
		if touch, ok := statusTouches[worst.kind]; ok {
			row("status", touch.update)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
}

func reasonOf(err error) string {
	if err == nil {
		return "accepted"
	}
	return string(apierrors.ReasonForError(err))
}

// measure calls the functions in turn and returns the median CPU time of the process for each.
func measure(t *testing.T, process figure.Process, calls map[string]func() error) map[string]time.Duration {
	t.Helper()
	const batch = 10 // the clock of a process ticks every 10 ms
	took := map[string][]time.Duration{}
	for range *costRuns {
		for name, call := range calls {
			before := process.CPU(t)
			for range batch {
				_ = call()
			}
			took[name] = append(took[name], (process.CPU(t)-before)/batch)
		}
	}
	out := map[string]time.Duration{}
	for name, list := range took {
		slices.Sort(list)
		out[name] = list[len(list)/2]
	}
	return out
}

func create(t *testing.T, resource dynamic.ResourceInterface, object *unstructured.Unstructured) func() error {
	return func() error {
		_, err := resource.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// update stores the object and returns a function that changes its spec, or its status, in a dry run. A kind without
// rules has its status beside its spec.
func (e edits) update(t *testing.T, resource dynamic.ResourceInterface,
	object *unstructured.Unstructured) func() error {
	t.Helper()
	stored, err := resource.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("storing a %s to update: %v", object.GetKind(), err)
	}
	t.Cleanup(func() { // an API server with all of them would be a slower one
		_ = resource.Delete(context.WithoutCancel(t.Context()), object.GetName(), metav1.DeleteOptions{})
	})
	if stored.GetKind() == "CronJob" {
		e = edits{"spec>suspend": true}
	}
	e.apply(stored.Object)
	write := resource.Update
	if e.touchesStatus() && !strings.HasPrefix(stored.GroupVersionKind().Group, barePrefix) {
		write = func(ctx context.Context, object *unstructured.Unstructured, options metav1.UpdateOptions,
			_ ...string) (*unstructured.Unstructured, error) {
			return resource.UpdateStatus(ctx, object, options)
		}
	}
	return func() error {
		_, err := write(t.Context(), stored, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// touches are changes of specs, for which rules look at the whole spec anew.
var touches = map[string]edits{
	"JobSet": {"spec>suspend": true}, "Job": {"spec>suspend": true}, "GenericJob": {"spec>ttlSecondsAfterFinished": 9},
	"VCJob": {"spec>ttlSecondsAfterFinished": 9}, "LatticeJob": {"spec>queue": "q"}, "TrainingJob": {"spec>minSize": 1},
	"Workload": {"spec>queueName": "r"}, "ClusterQueue": {"spec>stopPolicy": "Hold"}, "Cohort": {"spec>parentName": "p"},
	"Queue": {"spec>weight": 2},
}

// statusTouches are changes of the status, such as controllers write many times a minute.
var statusTouches = map[string]edits{
	"JobSet": {"status>restarts": 1}, "GenericJob": {"status>phase": "Running"},
	"VCJob":      {"status>state>phase": "Running"},
	"LatticeJob": {"status>phase": "Running"}, "TrainingJob": {"status>replicaStatuses": "yaml:{Worker: {active: 1}}"},
	"Workload": {
		"status>conditions": "yaml:[{type: Finished, status: 'False', reason: R, message: m, lastTransitionTime: '2026-01-01T00:00:00Z'}]"},
	"ClusterQueue": {"status>pendingWorkloads": 1}, "Cohort": {"status>fairSharing>weightedShare": 1},
	"Queue": {"status>state": "Open"},
}

func sizeOf(t *testing.T, object *unstructured.Unstructured) int {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// pad makes the object larger by a text of that many bytes: an argument of its first container or, where it has none,
// an annotation, which may be a quarter of a megabyte.
func pad(object *unstructured.Unstructured, kind string, bytes int) {
	const mostAnnotation = 200 << 10
	text := strings.Repeat("a", max(bytes-16, 0))
	if at, ok := firstContainer[kind]; ok {
		edits{at + ">args": []any{text}}.apply(object.Object)
		return
	}
	object.SetAnnotations(map[string]string{"a": text[:min(len(text), mostAnnotation)]})
}

var firstContainer = map[string]string{
	"Job": "spec>template>spec>containers>0", "JobSet": leader + "template>spec>template>spec>containers>0",
	"GenericJob": "spec>replicaSpecs>0>template>spec>containers>0", "VCJob": "spec>tasks>0>template>spec>containers>0",
	"TrainingJob": "spec>replicaSpecs>template>spec>containers>0", "Workload": "spec>podSets>0>template>spec>containers>0",
	"LatticeJob": "spec>tasks>main>workload>containers>c",
}

// barePrefix begins the groups of kinds without rules.
const barePrefix = "bare."

// bareKind is a kind without rules.
type bareKind struct {
	kind     schema.GroupVersionKind
	resource dynamic.ResourceInterface
}

// bareObject returns the object as one of the kind without rules.
func bareObject(object *unstructured.Unstructured, bare bareKind, kind string) *unstructured.Unstructured {
	out := object.DeepCopy()
	out.SetGroupVersionKind(bare.kind)
	if kind == "Job" {
		out.Object["spec"] = map[string]any{"schedule": "@daily", "suspend": false,
			"jobTemplate": map[string]any{"spec": out.Object["spec"]}}
	}
	return out
}

// bareKinds defines, for each kind, another one of the same schema for which no rule and no policy holds. A batch Job
// has none: a CronJob's template is one, for which no policy holds either.
func bareKinds(t *testing.T, server *server) map[string]bareKind {
	t.Helper()
	cronJobs := batchv1.SchemeGroupVersion.WithResource("cronjobs")
	out := map[string]bareKind{"Job": {batchv1.SchemeGroupVersion.WithKind("CronJob"),
		server.clientFor(t, "").Resource(cronJobs).Namespace(server.namespace)}}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
	only := regexp.MustCompile(*costOnly)
	for name, of := range kinds {
		if !slices.ContainsFunc(worstObjects(),
			func(w worstObject) bool { return w.kind == name && only.MatchString(w.kind+", "+w.what) }) || name == "Job" {
			continue
		}
		found, err := server.clientFor(t, "").Resource(definitions).Get(t.Context(),
			of.resource.Resource+"."+of.resource.Group, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		versions, _, _ := unstructured.NestedSlice(found.Object, "spec", "versions")
		version := versions[0].(map[string]any)
		dropRules(version)
		delete(version, "subresources")
		kind, _, _ := unstructured.NestedString(found.Object, "spec", "names", "kind")
		group := barePrefix + of.resource.Group
		scope, _, _ := unstructured.NestedString(found.Object, "spec", "scope")
		defineAs(t, server, group, kind, of.resource.Resource, scope, version)
		resource := server.clientFor(t, "").Resource(schema.GroupVersionResource{Group: group, Version: of.resource.Version,
			Resource: of.resource.Resource})
		out[name] = bareKind{schema.GroupVersionKind{Group: group, Version: of.resource.Version, Kind: kind}, resource}
		if of.namespaced {
			out[name] = bareKind{out[name].kind, resource.Namespace(server.namespace)}
		}
	}
	return out
}

// dropRules removes all rules from a schema.
func dropRules(node any) {
	switch node := node.(type) {
	case map[string]any:
		delete(node, "x-kubernetes-validations")
		for _, child := range node {
			dropRules(child)
		}
	case []any:
		for _, child := range node {
			dropRules(child)
		}
	}
}
