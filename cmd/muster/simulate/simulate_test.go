package simulate

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/sim"
)

// queues returns the manifests of two ClusterQueues of 6 and 2 GPUs that plan starts, each with a LocalQueue.
func queues() string {
	out := "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: h100}\n"
	for _, q := range []struct {
		name string
		gpus int
	}{{"big", 6}, {"small", 2}} {
		out += fmt.Sprintf(`---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: %[1]s, annotations: {muster.dev/backfill: "true"}}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: h100, resources: [{name: nvidia.com/gpu, nominalQuota: %[2]d}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: gpu, namespace: %[1]s}
spec: {clusterQueue: %[1]s}
`, q.name, q.gpus)
	}
	return out
}

// node returns the manifest of a node of 4 GPUs in a rack.
func node(name string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {rack: a}}
status: {capacity: {nvidia.com/gpu: "4"}, aFieldOfTheFuture: 1}
`, name)
}

// onNodes has the flavor of queues with a topology.
func onNodes(manifests string) string {
	return `apiVersion: kueue.x-k8s.io/v1beta1
kind: Topology
metadata: {name: racks}
spec: {levels: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]}
---
` + strings.Replace(manifests, "metadata: {name: h100}\n",
		"metadata: {name: h100}\nspec: {nodeLabels: {rack: a}, topologyName: racks}\n", 1)
}

// line returns a line of a log in the Standard Workload Format.
func line(submitted, run, size, limit int, user string) string {
	return fmt.Sprintf("1 %d -1 %d %d -1 -1 %d %d -1 1 %s 1 -1 1 -1 -1 -1\n", submitted, run, size, size, limit, user)
}

// setup reads manifests.
func setup(t *testing.T, manifests string) *Setup {
	t.Helper()
	s, err := ReadSetup(strings.NewReader(manifests), func(note string) { t.Log(note) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// play plays a log on a setup.
func play(t *testing.T, s *Setup, log string, o Options) *Outcome {
	t.Helper()
	jobs, err := ReadTrace(strings.NewReader(log), false)
	if err != nil {
		t.Fatal(err)
	}
	o.Configuration, o.Resource, o.PerPod = config.Default(), sim.GPU, max(1, o.PerPod)
	out, err := Run(context.Background(), s, jobs, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// printed returns the table and the CSV of an outcome.
func printed(t *testing.T, o *Outcome) (table, csv string) {
	t.Helper()
	var a, b bytes.Buffer
	if err := o.Table(&a); err != nil {
		t.Fatal(err)
	}
	if err := o.CSV(&b); err != nil {
		t.Fatal(err)
	}
	return a.String(), b.String()
}

// sample is a log of three users. Users a and c get big, and b gets small. On big the job of 6 GPUs is promised a start
// at 100 s, when the first ends by its limit; it starts at 50 s. The last job never fits.
var sample = line(0, 50, 4, 100, "a") + line(0, 10, 2, 20, "b") + line(5, 30, 6, 40, "c") + line(6, 10, 1, 50, "b") +
	line(10, 1, 9, 5, "a")

func TestTableAndCSV(t *testing.T) {
	table, csv := printed(t, play(t, setup(t, queues()), sample, Options{}))
	wantTable := `QUEUE JOBS MEAN MEDIAN P90 P99 LONGEST BSLD USED KEPT LATE
big      3  22s     0s 45s 45s     45s  1.8  67%    1    0
small    2   2s     0s  4s  4s      4s  1.2 100%    1    0
all      5  12s     0s 45s 45s     45s  1.5  75%    2    0
never started in big: 1 (too large, or not accepted)
`
	wantCSV := `job,queue,size,submitted,started,ended,waited
job-0000000,big/gpu,4,0,0,50,0
job-0000001,small/gpu,2,0,0,10,0
job-0000002,big/gpu,6,5,50,80,45
job-0000003,small/gpu,1,6,10,20,4
job-0000004,big/gpu,9,10,,,
`
	if diff := cmp.Diff(wantTable, table); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantCSV, csv); diff != "" {
		t.Errorf("CSV (-want +got):\n%s", diff)
	}
}

func TestJSONHasAllFigures(t *testing.T) {
	var out bytes.Buffer
	if err := play(t, setup(t, queues()), sample, Options{}).JSON(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"kind": "Simulation"`, `"queue": "small"`, `"neverStarted": 1`, `"utilization": 0.75`,
		`"longestWaitSeconds": 45`, `"promisesKept": 2`, `"promisesDelayed": 0`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the JSON lacks %s:\n%s", want, out.String())
		}
	}
}

// TestTableFitsATerminal: whatever names and figures are, a line has at most 80 columns.
func TestTableFitsATerminal(t *testing.T) {
	s := setup(t, strings.ReplaceAll(queues(), "small", "a-name-that-is-much-too-long-for-a-table"))
	o := play(t, s, line(0, 300_000_000, 6, -1, "a")+line(1, 1, 2, 5, "b")+line(2, 300_000_000, 6, -1, "a")+
		line(3, 1, 6, -1, "a"), Options{})
	table, _ := printed(t, o)
	for line := range strings.Lines(table) {
		if columns := utf8.RuneCountInString(strings.TrimRight(line, "\n")); columns > 80 {
			t.Errorf("a line has %d columns:\n%s", columns, line)
		}
	}
}

// TestUsersTakeTurns: except those that an annotation lists.
func TestUsersTakeTurns(t *testing.T) {
	s := setup(t, strings.Replace(queues(), "namespace: small}", "namespace: small, annotations: "+
		`{muster.dev/simulated-users: "b, d"}}`, 1))
	_, csv := printed(t, play(t, s, line(0, 1, 1, 5, "c")+line(0, 1, 1, 5, "d")+line(0, 1, 1, 5, "a")+
		line(0, 1, 1, 5, "b"), Options{}))
	var got []string
	for line := range strings.Lines(csv) {
		got = append(got, strings.Split(line, ",")[1])
	}
	if diff := cmp.Diff([]string{"queue", "big/gpu", "small/gpu", "big/gpu", "small/gpu"}, got); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	s.LocalQueues[0].Annotations = map[string]string{UsersAnnotation: "d"}
	if err := s.assign([]sim.Job{{User: "d"}}); err == nil || !strings.Contains(err.Error(), "both list the user") {
		t.Errorf("a user in two LocalQueues: error = %v", err)
	}
	s.LocalQueues[0].Annotations = map[string]string{UsersAnnotation: "x"}
	if err := s.assign([]sim.Job{{User: "y"}}); err == nil || !strings.Contains(err.Error(), `lists the user "y"`) {
		t.Errorf("a user in no LocalQueue: error = %v", err)
	}
}

// TestMoreNodes: 4 units more are shared 3 to 1; nodes are copied, and their quota is shared.
func TestMoreNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		manifests string
		more      int
		nodes     int
		big       int64
	}{
		"quota":                {queues(), 4, 0, 9},
		"nodes":                {onNodes(queues()) + node("n0") + node("n1"), 2, 4, 12},
		"none":                 {queues(), 0, 0, 6},
		"what cannot be split": {queues(), 1, 0, 6},
	} {
		t.Run(name, func(t *testing.T) {
			s := setup(t, tc.manifests)
			if err := s.Grow(tc.more, sim.GPU); err != nil {
				t.Fatal(err)
			}
			big := quota.FromQuantity(sim.GPU, quotasOf(s.ClusterQueues[0])[0].quota.NominalQuota)
			small := quota.FromQuantity(sim.GPU, quotasOf(s.ClusterQueues[1])[0].quota.NominalQuota)
			all := int64(8 + tc.more)
			if tc.nodes > 0 {
				all = 8 + 4*int64(tc.more)
			}
			if len(s.Nodes) != tc.nodes || big != tc.big || big+small != all {
				t.Errorf("%d nodes, and quotas of %d and %d; want %d nodes, %d and %d", len(s.Nodes), big, small, tc.nodes,
					tc.big, all-tc.big)
			}
		})
	}
	unselected := setup(t, onNodes(queues())+strings.Replace(node("n0"), "rack: a", "rack: b", 1))
	err := unselected.Grow(1, sim.GPU)
	if err == nil || !strings.Contains(err.Error(), "no queue has quota of nvidia.com/gpu") {
		t.Errorf("a node that no flavor selects: error = %v", err)
	}
}

// TestGangsNeedNodes: two pods of 3 GPUs need two nodes of 4, whatever the quota.
func TestGangsNeedNodes(t *testing.T) {
	log := line(0, 10, 6, 20, "a") + line(0, 10, 2, 20, "b")
	for nodes, want := range map[int]string{1: "big/gpu,6,0,,,\n", 2: "big/gpu,6,0,0,10,0\n"} {
		manifests := onNodes(queues())
		for i := range nodes {
			manifests += node(fmt.Sprint("n", i))
		}
		if _, csv := printed(t, play(t, setup(t, manifests), log, Options{PerPod: 4})); !strings.Contains(csv, want) {
			t.Errorf("on %d nodes the CSV lacks %q:\n%s", nodes, want, csv)
		}
	}
}

// TestPriorities: of the jobs that wait for the two GPUs, the one goes first whose user has a class, or that says so.
func TestPriorities(t *testing.T) {
	class := `---
apiVersion: kueue.x-k8s.io/v1beta1
kind: WorkloadPriorityClass
metadata: {name: urgent, annotations: {muster.dev/simulated-users: "c"}}
value: 100
`
	small := func(change string) *Setup {
		return setup(t, strings.Replace(queues()+change, "nominalQuota: 6", "nominalQuota: 2", 1))
	}
	log := line(0, 10, 2, 20, "a") + line(1, 10, 2, 20, "x") + line(2, 10, 2, 20, "a") + line(3, 10, 2, 20, "y") +
		line(3, 10, 2, 20, "z") + line(4, 10, 2, 20, "c")
	_, csv := printed(t, play(t, small(class), log, Options{}))
	if want := "big/gpu,2,4,10,20,6\n"; !strings.Contains(csv, want) {
		t.Errorf("the CSV lacks %q:\n%s", want, csv)
	}
	list := `[{"at": 0, "replicas": 2, "run": 10, "user": "a"}, {"at": 1, "replicas": 2, "run": 10, "user": "a"},
{"at": 2, "replicas": 2, "run": 10, "priority": 1, "user": "a"}]`
	_, csv = printed(t, play(t, small(""), list, Options{}))
	if want := "big/gpu,2,2,10,20,8\n"; !strings.Contains(csv, want) {
		t.Errorf("the CSV lacks %q:\n%s", want, csv)
	}
	twice := small(class + strings.Replace(class, "urgent", "other", 1))
	jobs := []sim.Job{{Name: "a", Min: 1, Max: 1, Work: 1}}
	_, err := Run(t.Context(), twice, jobs, Options{Configuration: config.Default(), Resource: sim.GPU, PerPod: 1})
	if err == nil || !strings.Contains(err.Error(), "both list the user \"c\"") {
		t.Errorf("error = %v, want that two classes list the same user", err)
	}
}

// TestGangsWithinARack: of two racks with one free node each, none holds a gang of two nodes that must be in one rack.
func TestGangsWithinARack(t *testing.T) {
	manifests := onNodes(queues()) + node("a1") + strings.Replace(node("b1"), "rack: a", "rack: b", 1)
	manifests = strings.NewReplacer("nominalQuota: 6", "nominalQuota: 8",
		"{rack: a}, topologyName", "{pool: g}, topologyName", "{rack: ", "{pool: g, rack: ").Replace(manifests)
	const job = `{"at": 0, "replicas": 8, "run": 10, "user": "a"%s}`
	for within, want := range map[string]string{"": "big/gpu,8,0,0,10,0\n", `, "within": "rack"`: "big/gpu,8,0,,,\n"} {
		list := "[" + fmt.Sprintf(job, within) + "]"
		if _, csv := printed(t, play(t, setup(t, manifests), list, Options{PerPod: 4})); !strings.Contains(csv, want) {
			t.Errorf("with %q the CSV lacks %q:\n%s", within, want, csv)
		}
	}
}

// TestWithoutLimitsNothingIsPromised: jobs run as long all the same.
func TestWithoutLimitsNothingIsPromised(t *testing.T) {
	o := play(t, setup(t, queues()), sample, Options{WithoutLimits: true})
	_, all := o.Rows()
	if _, csv := printed(t, o); all.Kept != 0 || !strings.Contains(csv, "6,5,50,80,45") {
		t.Errorf("%d promises kept, want none; jobs:\n%s", all.Kept, csv)
	}
}

func TestInterruptedRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Run(ctx, setup(t, queues()), []sim.Job{{Name: "a", Min: 1, Max: 1, Work: 1}},
		Options{Configuration: config.Default(), Resource: sim.GPU, PerPod: 1})
	if err == nil || err.Error() != "interrupted" {
		t.Errorf("error = %v, want that it was interrupted", err)
	}
}

func TestReadTraceTellsFormatsApart(t *testing.T) {
	list := `[{"name": "x", "at": 0, "replicas": 1, "max": 2, "work": 9, "speed": [1, 1.5], "exp": 0.5, "app": "x"}]`
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(sample))
	_ = z.Close()
	for _, tc := range []struct {
		name, text, says string
		jobs             int
	}{
		{"a log", sample, "", 5}, {"a compressed log", zipped.String(), "", 5}, {"a list", list, "", 1},
		{"a compressed log that is cut off", zipped.String()[:40], "unexpected EOF", 0},
		{"nothing", "", "no job with a run time", 0}, {"comments", "; nothing\n", "no job with a run time", 0},
	} {
		jobs, err := ReadTrace(strings.NewReader(tc.text), false)
		if len(jobs) != tc.jobs || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %d jobs and error %v, want %d and %q", tc.name, len(jobs), err, tc.jobs, tc.says)
		}
	}
}

// TestManifestsThatMakeNoSense: the error says in which document, and what is wrong.
func TestManifestsThatMakeNoSense(t *testing.T) {
	with := func(from, to string) string { return strings.Replace(queues(), from, to, 1) }
	for name, tc := range map[string]struct{ manifests, says string }{
		"no YAML":   {queues() + "---\n\nkind: [\n", "in the document that begins at line 34"},
		"no object": {"just text\n", "in the document that begins at line 1: it is no object of Kubernetes"},
		"no kind":   {"a: 1\n", "it has no apiVersion and kind"},
		"an unknown field": {with("namespaceSelector", "namespaceSelektor"),
			"line 5: ClusterQueue big: error unmarshaling"},
		"no amount": {with("nominalQuota: 6", "nominalQuota: lots"), "ClusterQueue big"},
		"a negative quota": {with("nominalQuota: 6", "nominalQuota: -6"),
			"ClusterQueue big has a negative quota of nvidia.com/gpu"},
		"an unknown flavor": {with("flavors: [{name: h100", "flavors: [{name: b200"),
			"names the ResourceFlavor b200, which is not there"},
		"an unknown queue": {with("{clusterQueue: big}", "{clusterQueue: bog}"), "big/gpu names the ClusterQueue bog"},
		"no name":          {with("{name: h100}", "{}"), "line 1: the ResourceFlavor has no name"},
		"twice the same":   {queues() + "---\n" + queues(), "ResourceFlavor h100 is there twice"},
		"a missing topology": {with("{name: h100}\n", "{name: h100}\nspec: {nodeLabels: {a: b}, topologyName: racks}\n"),
			"names the Topology racks, which is not there"},
		"checks": {with("  namespaceSelector: {}\n", "  namespaceSelector: {}\n  admissionChecks: [budget]\n"),
			"not simulated"},
		"no answer": {with(`backfill: "true"`, `backfill: "maybe"`),
			"ClusterQueue big: the annotation muster.dev/backfill must be true or false"},
		"no duration": {with(`backfill: "true"`, `max-duration: "-5m"`),
			"ClusterQueue big: the annotation muster.dev/max-duration must be a duration"},
		"nothing": {"", "there is no LocalQueue"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadSetup(strings.NewReader(tc.manifests), func(string) {})
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error = %v, want one that says %q", err, tc.says)
			}
		})
	}
}

// TestOtherManifests: lists as kubectl prints them and newer versions of Kueue's API are read, other kinds are named.
func TestOtherManifests(t *testing.T) {
	list := `apiVersion: v1
kind: List
items:
- {apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: {cohortName: lab}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}
- {apiVersion: kueue.x-k8s.io/v1beta1, kind: LocalQueue, metadata: {name: l}, spec: {clusterQueue: q}}
`
	var notes []string
	s, err := ReadSetup(strings.NewReader(list), func(note string) { notes = append(notes, note) })
	if err != nil {
		t.Fatal(err)
	}
	if s.ClusterQueues[0].Spec.Cohort != "lab" || s.LocalQueues[0].Namespace != "default" ||
		s.Namespaces[0].Name != "default" {
		t.Errorf("read %+v", s)
	}
	if diff := cmp.Diff([]string{"ConfigMap settings is not simulated"}, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}
